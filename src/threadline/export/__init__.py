"""Sessions as files to keep or to share."""
