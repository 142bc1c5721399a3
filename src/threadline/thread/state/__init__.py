"""The state at any place of a session: files, lists and settings, replayed in order of time."""
