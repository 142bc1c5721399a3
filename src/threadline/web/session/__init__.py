"""The pages and fragments that show one session."""
