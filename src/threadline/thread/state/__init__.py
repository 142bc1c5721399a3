"""The state at any place of a session: files, lists and settings, replayed in order of time.

`state_at` returns the state, `difference` compares two states, `check_reads` compares the replay with what was read.
"""

from threadline.thread.state.replay import check_reads, difference, state_at

__all__ = ["check_reads", "difference", "state_at"]
