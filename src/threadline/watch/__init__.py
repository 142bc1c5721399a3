"""Follow transcripts as they grow."""
