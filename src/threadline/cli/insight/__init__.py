"""The commands that explain what was spent, by whom and for what. Each module defines the command of its name."""
