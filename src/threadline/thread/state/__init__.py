"""The state at any place of a session: files, lists and settings, replayed in order of time.

`state_at` gives the state, `difference` compares two of them, `check_reads` holds the replay against what was read.
"""

from threadline.thread.state.replay import check_reads, difference, state_at

__all__ = ["check_reads", "difference", "state_at"]
