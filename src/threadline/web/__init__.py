"""The local page: a server that only reads, for one person on one machine."""
