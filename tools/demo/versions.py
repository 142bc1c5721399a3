"""Versions of Claude Code, and which features each of them wrote.

The table `WRITTEN` is the documentation: a field or habit, the first version that has it and the first that no longer
does. It follows the public changelog and transcripts of those versions.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

Version = tuple[int, int, int]

NEVER: Version = (9, 0, 0)

WRITTEN: dict[str, tuple[Version, Version]] = {
    "costUSD": ((0, 2, 0), (1, 0, 9)),
    "requestId": ((1, 0, 9), NEVER),
    "inline agents": ((0, 2, 0), (2, 0, 28)),
    "agents beside": ((2, 0, 28), (2, 1, 2)),
    "agents below": ((2, 1, 2), NEVER),
    "summary root": ((1, 0, 35), (1, 0, 90)),
    "compact_boundary": ((1, 0, 90), NEVER),
    "gitBranch": ((1, 0, 56), NEVER),
    "cache_creation": ((1, 0, 90), NEVER),
    "resume copies": ((0, 2, 0), (1, 0, 124)),
    "MultiEdit": ((1, 0, 0), (1, 0, 109)),
    "LS": ((0, 2, 82), (1, 0, 109)),
    "TodoWrite": ((1, 0, 0), (2, 1, 59)),
    "thinkingMetadata": ((1, 0, 117), (2, 1, 46)),
    "model first": ((2, 0, 0), (2, 1, 300)),
    "snapshots": ((2, 0, 0), (2, 1, 208)),
    "deltas": ((2, 1, 208), NEVER),
    "queue": ((2, 0, 28), NEVER),
    "agentId": ((2, 0, 28), NEVER),
    "slug": ((2, 0, 64), (2, 1, 218)),
    "todos": ((2, 0, 64), (2, 1, 63)),
    "stop_hook_summary": ((2, 0, 64), NEVER),
    "sessions-index": ((2, 0, 70), (2, 1, 31)),
    "sourceToolAssistantUUID": ((2, 1, 1), NEVER),
    "turn_duration": ((2, 1, 1), (2, 1, 200)),
    "tool-results": ((2, 1, 47), NEVER),
    "progress": ((2, 1, 12), (2, 1, 84)),
    "permissionMode": ((2, 1, 15), NEVER),
    "tasks": ((2, 1, 16), NEVER),
    "caller": ((2, 1, 17), NEVER),
    "inference_geo": ((2, 1, 17), NEVER),
    "pr-link": ((2, 1, 27), NEVER),
    "iterations": ((2, 1, 38), NEVER),
    "noOutputExpected": ((2, 1, 38), NEVER),
    "speed": ((2, 1, 41), NEVER),
    "final usage": ((2, 1, 59), NEVER),
    "every row final": ((2, 1, 176), NEVER),
    "Agent": ((2, 1, 63), NEVER),
    "meta.json": ((2, 1, 70), NEVER),
    "empty thinking": ((2, 1, 71), NEVER),
    "stop_details": ((2, 1, 72), NEVER),
    "last-prompt": ((2, 1, 72), NEVER),
    "envelope last": ((2, 1, 76), NEVER),
    "promptId": ((2, 1, 76), NEVER),
    "entrypoint": ((2, 1, 79), NEVER),
    "titles": ((2, 1, 80), NEVER),
    "summary": ((0, 2, 0), (2, 1, 80)),
    "attachments": ((2, 1, 97), NEVER),
    "null originalFile": ((2, 1, 97), NEVER),
    "toolStats": ((2, 1, 101), NEVER),
    "away_summary": ((2, 1, 108), NEVER),
    "diagnostics": ((2, 1, 120), (2, 1, 300)),
    "leafUuid": ((2, 1, 140), NEVER),
    "workflows": ((2, 1, 154), NEVER),
    "gitOperation": ((2, 1, 176), NEVER),
    "promptSource": ((2, 1, 176), NEVER),
    "async agents": ((2, 1, 198), NEVER),
    "toolDenialKind": ((2, 1, 205), NEVER),
    "searchCount": ((2, 1, 205), NEVER),
    "resolvedModel": ((2, 1, 205), NEVER),
    "toolUseId in meta": ((2, 1, 205), NEVER),
    "total_tokens_reminder": ((2, 1, 205), NEVER),
    "effort": ((2, 1, 212), NEVER),
    "cost-state": ((2, 1, 220), NEVER),
    "output_tokens_details": ((2, 1, 228), NEVER),
    "requests": ((2, 1, 320), NEVER),
}
"""By feature: the first version that writes it, and the first that no longer does."""


class VersionFeatures(msgspec.Struct, frozen=True):
    """A version, the features that it writes, and when it was used."""

    version: str
    first: int
    """Days from its release to the last day of the home."""
    last: int
    """Days from its replacement to the last day of the home."""
    models: tuple[str, ...]
    weight: float = 1.0

    def writes(self, what: str) -> bool:
        """Whether this version writes a feature (a key of `WRITTEN`)."""
        return what in _written(self.version)


@lru_cache(maxsize=64)
def _written(version: str) -> frozenset[str]:
    major, minor, patch = map(int, version.split("."))
    number = (major, minor, patch)
    return frozenset(what for what, (since, until) in WRITTEN.items() if since <= number < until)


_SONNET_4 = "claude-sonnet-4-20250514"
_OPUS_4 = "claude-opus-4-20250514"
_OPUS_41 = "claude-opus-4-1-20250805"
_SONNET_45 = "claude-sonnet-4-5-20250929"
_OPUS_45 = "claude-opus-4-5-20251101"
_HAIKU_45 = "claude-haiku-4-5-20251001"

ERAS = (
    VersionFeatures("0.2.126", 545, 540, ("claude-3-7-sonnet-20250219",), 0.15),
    VersionFeatures("1.0.3", 536, 525, (_SONNET_4, _OPUS_4), 0.2),
    VersionFeatures("1.0.35", 508, 490, (_SONNET_4, _OPUS_4), 0.4),
    VersionFeatures("1.0.64", 472, 455, (_SONNET_4, _OPUS_4), 0.4),
    VersionFeatures("1.0.108", 436, 425, (_SONNET_4, _OPUS_41), 0.5),
    VersionFeatures("1.0.120", 424, 411, (_SONNET_4, _OPUS_41), 0.4),
    VersionFeatures("2.0.28", 383, 360, (_SONNET_45, _OPUS_41), 0.6),
    VersionFeatures("2.0.76", 330, 311, (_SONNET_45, _OPUS_45, _HAIKU_45), 0.8),
    VersionFeatures("2.1.7", 305, 300, (_OPUS_45, _SONNET_45), 0.6),
    VersionFeatures("2.1.19", 295, 285, (_OPUS_45, _SONNET_45), 1.5),
    VersionFeatures("2.1.38", 277, 275, (_OPUS_45, "claude-opus-4-6"), 1.2),
    VersionFeatures("2.1.41", 274, 265, ("claude-opus-4-6", _SONNET_45), 1.0),
    VersionFeatures("2.1.62", 260, 250, ("claude-opus-4-6", "claude-sonnet-4-6"), 0.9),
    VersionFeatures("2.1.81", 238, 230, ("claude-opus-4-6", "claude-sonnet-4-6", _HAIKU_45), 0.9),
    VersionFeatures("2.1.119", 203, 195, ("claude-opus-4-7", "claude-sonnet-4-6"), 1.4),
    VersionFeatures("2.1.176", 155, 148, ("claude-opus-4-8", "claude-sonnet-4-6"), 1.0),
    VersionFeatures("2.1.209", 122, 116, ("claude-opus-4-8", "claude-sonnet-5"), 1.0),
    VersionFeatures("2.1.219", 113, 100, ("claude-opus-5", "claude-sonnet-5"), 1.2),
    VersionFeatures("2.1.232", 93, 80, ("claude-opus-5", "claude-sonnet-5"), 1.0),
    VersionFeatures("2.1.280", 53, 40, ("claude-opus-5-5", "claude-sonnet-5"), 1.0),
    VersionFeatures("2.1.311", 19, 8, ("claude-opus-5-5", "claude-sonnet-5-5"), 1.0),
    VersionFeatures("2.1.325", 7, 0, ("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"), 1.2),
)

MARKETING = {
    "claude-opus-5-5": "Opus 5.5",
    "claude-sonnet-5-5": "Sonnet 5.5",
    "claude-haiku-5-5": "Haiku 5.5",
}

RATES = {
    "claude-3-7-sonnet-20250219": (300, 1500, 375, 600, 30),
    _SONNET_4: (300, 1500, 375, 600, 30),
    _OPUS_4: (1500, 7500, 1875, 3000, 150),
    "claude-sonnet-5": (200, 1000, 250, 400, 20),
    "claude-opus-5": (500, 2500, 625, 1000, 50),
    "claude-opus-5-5": (400, 2000, 500, 800, 20),
}
"""US cents per million tokens: input, output, cache write for 5 minutes and for 1 hour, cache read.

Only what the rows need that carry an amount themselves (`costUSD`, `cost-state`). Models whose price depends
on the size of the prompt, or that the client prices otherwise than the list, are left out on purpose.
"""
