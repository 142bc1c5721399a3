"""Shelf: the sessions that pages are made of, each read once and kept while it is looked at."""


class Shelf:
    """The sessions in memory."""
