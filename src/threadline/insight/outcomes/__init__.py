"""What a session produced: commits, pushes, pull requests, test runs and lines that survive."""
