"""The pages but the session's."""
