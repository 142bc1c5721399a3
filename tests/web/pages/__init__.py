"""Tests of all pages except the session's."""
