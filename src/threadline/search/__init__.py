"""What a person asks for, understood: the query language, and what it means for an entry."""
