"""The page in a real browser. A package, so that the browser ends with the last of these tests: see conftest.py."""
