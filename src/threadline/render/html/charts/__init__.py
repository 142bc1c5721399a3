"""Charts as SVG: made here, without scripts, each with a table that says the same."""
