"""What a refresh extracts from a transcript, entry by entry, and how it is written.

`state` reads a transcript, or what was appended to it, and passes each entry to what collects calls (`calls`), agents,
compactions and todo lists (`agents`), and usage (`sighting_rows`). Afterwards `result_links` and `summary_links` link
rows of different transcripts. These modules load the reader, so a query of a fresh index imports none of them.
"""
