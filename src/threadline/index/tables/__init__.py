"""The tables of the index, one small file a topic: how each is made, and what its columns mean."""
