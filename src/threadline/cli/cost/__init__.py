"""The commands about tokens, prices and amounts. Each module defines the command of its name."""
