"""The keys of stored transcripts, and what both kinds of stores do with keys and entries."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NotRequired, Required, TypedDict

from threadline.errors import BadQuery, Missing

Entry = Mapping[str, Any]
METADATA = "agent_metadata"
"""The type of the entry that describes a subagent. Claude Code writes it to a file beside the transcript."""
_UNSAFE_CHARACTER = re.compile(r"[/\\:\0]")
_MAX_NAME_BYTES = 240


class SessionKey(TypedDict):
    """The name of a transcript: a session's own, or with `subpath` another of its files, such as a subagent's."""

    project_key: Required[str]
    session_id: Required[str]
    subpath: NotRequired[str | None]


class StoredSession(TypedDict):
    """A session and when it was last written, in milliseconds since 1970."""

    session_id: str
    mtime: int


class StoredSummary(StoredSession):
    """What the SDK keeps about a session. Only the SDK interprets `data`."""

    data: dict[str, Any]


def transcript_path(key: SessionKey) -> str:
    """The path of a transcript in a home, below `projects` and without its suffix.

    Raises:
        BadQuery: a part of the key cannot be the name of a file, or leads out of the store.
    """
    subpath = key.get("subpath")
    parts = [key["project_key"], key["session_id"], *(subpath.split("/") if subpath else ())]
    return "/".join(map(check_name, parts))


def check_name(name: str) -> str:
    """A part of a key, which becomes the name of a file.

    Raises:
        BadQuery: it cannot be one, or leads out of the store.
    """
    is_too_long = len(os.fsencode(name)) > _MAX_NAME_BYTES
    if not name or name in {".", ".."} or is_too_long or _UNSAFE_CHARACTER.search(name):
        raise BadQuery(f"{name!r} cannot be the name of a file. Use project keys and session ids without / \\ and :.")
    return name


def encode_entry(entry: Entry) -> bytes:
    """Encode an entry as a line of a transcript."""
    try:
        return json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can only escape
        return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def load_fold() -> Callable[..., Any]:
    """Load the function with which the SDK summarizes sessions.

    Raises:
        Missing: the SDK is not installed.
    """
    try:
        from claude_agent_sdk import fold_session_summary  # noqa: PLC0415 - only the SDK's own programs have it
    except ImportError as error:
        raise Missing("Summaries of sessions need the SDK: pip install claude-agent-sdk") from error
    fold: Callable[..., Any] = fold_session_summary
    return fold
