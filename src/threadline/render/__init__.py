"""A session to what a person reads: text for a terminal, and trees. What a transcript says never steers a terminal."""
