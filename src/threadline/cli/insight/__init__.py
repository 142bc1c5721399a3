"""The commands that explain what was spent, what for and by whom. Each module defines the command of its name."""
