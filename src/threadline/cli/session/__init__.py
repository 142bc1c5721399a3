"""The commands that show what is inside a session. Each module defines the command of its name."""
