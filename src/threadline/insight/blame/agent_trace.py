"""Write who wrote a file as an Agent Trace record (https://agent-trace.dev, version 0.1.0).

The record has only the fields of the specification. Its line numbers are those of `vcs.revision`, so that is left out
if the file has been changed since the last commit.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from threadline.json_values import encode_json
from threadline.model.insight.blame import Blame, BlamedLine
from threadline.thread import base_name

_VERSION = "0.1.0"
_MAX_MODEL = 250
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def agent_trace_record(blame: Blame, *, tool_version: str, recorded: datetime) -> dict[str, Any]:
    """Return the record of a file. Lines that no session wrote have the contributor `unknown`."""
    files = [{"path": _relative_path(blame), "conversations": list(_conversations(blame.lines))}]
    sessions = sorted({str(line.session) for line in blame.lines if line.session is not None})
    name = f"agent-trace:{encode_json([files, blame.revision]).decode()}"
    record: dict[str, Any] = {
        "version": _VERSION,
        "id": str(uuid5(NAMESPACE_URL, name)),
        "timestamp": recorded.isoformat(),
        "tool": {"name": "threadline", "version": tool_version},
        "files": files,
        "metadata": {"threadline": {"source": str(blame.source), "sessions": sessions}},
    }
    if blame.revision is not None:
        record["vcs"] = {"type": "git", "revision": blame.revision}
    return record


def _relative_path(blame: Blame) -> str:
    if blame.repository is None:
        return base_name(blame.file)
    root, file = os.path.realpath(blame.repository), os.path.realpath(blame.file)
    return os.path.relpath(file, root).replace(os.sep, "/")


def _conversations(lines: Sequence[BlamedLine]) -> Iterator[dict[str, Any]]:
    """Yield the lines of each session and model, in order of their first line, and then those of nobody."""
    groups: dict[tuple[str, str | None] | None, list[BlamedLine]] = {}
    for line in lines:
        key = (str(line.session), line.model) if line.session is not None else None
        groups.setdefault(key, []).append(line)
    for key, members in groups.items():
        if key is None:
            continue
        session, model = key
        contributor = {"type": "ai"}
        if model is not None and (model_id := _model_id(model)):
            contributor["model_id"] = model_id
        yield {"url": _session_url(session), "contributor": contributor, "ranges": list(_ranges(members))}
    if None in groups:
        yield {"contributor": {"type": "unknown"}, "ranges": list(_ranges(groups[None]))}


def _ranges(lines: Sequence[BlamedLine]) -> Iterator[dict[str, Any]]:
    """Yield the runs of lines with consecutive numbers."""
    run: list[BlamedLine] = []
    for line in lines:
        if run and line.line != run[-1].line + 1:
            yield _range(run)
            run = []
        run.append(line)
    if run:
        yield _range(run)


def _range(run: Sequence[BlamedLine]) -> dict[str, Any]:
    text = "\n".join(line.text for line in run)
    digest = hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
    return {"start_line": run[0].line, "end_line": run[-1].line, "content_hash": f"sha256:{digest}"}


def _model_id(model: str) -> str | None:
    """The name of a model as models.dev writes it, with its provider."""
    if model.startswith("<"):
        return None
    return (f"anthropic/{model}" if model.startswith("claude") else model)[:_MAX_MODEL]


def _session_url(session: str) -> str:
    """The id of a session as a URI: it has no address that others could open."""
    return (
        f"urn:uuid:{session.lower()}" if _UUID.fullmatch(session) else f"urn:claude-session:{quote(session, safe='')}"
    )
