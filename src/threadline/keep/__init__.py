"""The keep: raw bytes stored for good, since Claude Code deletes its files."""
