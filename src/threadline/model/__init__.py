"""The nouns: frozen structs that every other part speaks in. Import each from its own module."""
