"""Summaries of sessions and statistics of transcripts, from files or from the index."""
