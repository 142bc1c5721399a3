"""The index of an archive: what its entries say, made findable, and nothing that the transcripts do not say."""
