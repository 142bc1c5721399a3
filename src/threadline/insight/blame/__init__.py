"""Say who wrote each line of a file: the edit of a session, a commit, or unknown."""
