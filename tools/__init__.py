"""Tools for developing threadline; not part of the package."""
