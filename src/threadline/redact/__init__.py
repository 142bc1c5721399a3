"""Find and remove secrets, personal data and home paths from text."""
