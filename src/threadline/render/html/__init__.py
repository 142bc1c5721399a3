"""A session as HTML: one renderer for the page, its fragments and the exported file."""
