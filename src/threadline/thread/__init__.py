"""Entries to a session: the tree, the active thread, branches, compactions, agents, calls, turns."""
