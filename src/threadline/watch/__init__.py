"""Follow transcripts while Claude Code writes them.

`Follower.poll()` returns the entries written since the last poll, each once, in order of time. `HomeWatcher.poll()`
(from `threadline.find`) only says which transcripts changed and how, without reading them; the web page needs no more.
`tail` knows which lines of a file are new, even if it was cut or rewritten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import export_lazily

if TYPE_CHECKING:
    from threadline.watch.follower import FollowedEntry, Follower

export_lazily(
    __name__,
    {
        "follower": ["FollowedEntry", "Follower"],
    },
)
