"""Follow transcripts as they grow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import lazy_exports

if TYPE_CHECKING:
    from threadline.watch.events import LiveOutline, is_quiet, item_tools
    from threadline.watch.follower import FollowedEntry, Follower, ShrinkDetector

__getattr__ = lazy_exports(
    __name__,
    {
        "events": ["LiveOutline", "is_quiet", "item_tools"],
        "follower": ["FollowedEntry", "Follower", "ShrinkDetector"],
    },
)
