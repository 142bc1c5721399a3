"""The web pages in a real browser. A package, so that the browser is closed after its last test: see conftest.py."""
