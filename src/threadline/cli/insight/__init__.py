"""The commands that explain what was spent: `why` and `waste`. Each module defines the command of its name."""
