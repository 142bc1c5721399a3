"""Paths of every kind of page in the home of `homes`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.browser import homes
from tests.browser.long_session import LONG

SHORT, PICTURES, GROWING = (f"/session/{session}" for session in (homes.SHORT, homes.PICTURES, homes.GROWING))
LONGEST = f"/session/{LONG}"

LISTS = {
    "home": "/",
    "sessions": "/sessions",
    "search": "/search",
    "search-hits": "/search?q=the",
    "search-nothing": "/search?q=zzzzqqqqxxxx",
    "usage": "/usage",
    "usage-by-model": "/usage?by=model",
    "calls": "/calls",
    "files": "/files",
    "files-log": "/files/log?path=a.py",
    "why": "/why?since=all",
    "why-by-session": "/why?since=all&by=session",
    "waste": "/waste?since=all&min=0",
    "outcomes": "/outcomes?since=all&kind=all",
    "tools": "/tools?since=all",
    "tools-by-week": "/tools?since=all&by=week",
    "digest": "/digest?unit=month",
    "blame": "/files/blame?path=edge_stitch.py",
    "errors": "/errors?since=all",
    "blocks": "/blocks",
    "history": "/history",
    "calls-slowest": "/calls?sort=duration",
    "compare": f"/compare?a={homes.SHORT}&b={homes.PICTURES}",
    "receipt": f"/receipt?session={homes.SHORT}",
    "receipt-of-a-day": "/receipt?day=DAY",
    "calls-failed": "/calls?sort=outcome",
    "session-facets": "/sessions?only=agents&sort=amount",
    "time-zone": "/time-zone",
    "doctor": "/doctor",
    "keys": "/keys",
    "access": "/access",
}
SESSIONS = {
    "short": SHORT,
    "short-sessions-beside": f"{SHORT}?side=sessions",
    "pictures": PICTURES,
    "long": LONGEST,
    "long-errors": f"{LONGEST}?errors=1",
    "agent": f"{LONGEST}/agent/AGENT",
    "entry": f"{SHORT}/entry/L2",
    "call": f"{SHORT}/call/CALL",
    "state": f"{LONGEST}/state/L2000",
    "session-why": f"{LONGEST}/why",
    "session-why-by-file": f"{LONGEST}/why?by=file",
    "session-why-by-turn": f"{LONGEST}/why?by=turn",
    "session-along": f"{LONGEST}/along",
    "session-related": f"{SHORT}/related",
    "notes": f"{SHORT}/notes",
    "todos": f"{SHORT}/todos",
    "share": f"{SHORT}/share?format=md&preview=1",
    "session-waste": f"{LONGEST}/waste?min=0",
    "session-cost": f"{LONGEST}/cost",
    "session-context": f"{LONGEST}/context/end",
    "session-timeline": f"{LONGEST}/timeline",
    "session-agents": f"{LONGEST}/agents",
    "session-changes": f"{LONGEST}/changes",
    "session-outcomes": f"{LONGEST}/outcomes",
}
ALL = {**LISTS, **SESSIONS}


def fill_ids(path: str, home: Path) -> str:
    """A path with AGENT and CALL replaced by ids of the home, and DAY by a day with costs."""
    if "DAY" in path:
        row = next(home.glob(f"projects/*/{homes.SHORT}.jsonl")).read_text().splitlines()[1]
        path = path.replace("DAY", json.loads(row)["timestamp"][:10])
    if "AGENT" in path:
        agents = sorted(next(home.glob(f"projects/*/{LONG}")).rglob("agent-*.jsonl"))
        path = path.replace("AGENT", agents[0].stem.removeprefix("agent-"))
    if "CALL" in path:
        text = next(home.glob(f"projects/*/{homes.SHORT}.jsonl")).read_text()
        blocks = [block for row in map(json.loads, text.splitlines()) for block in _blocks(row)]
        path = path.replace("CALL", next(block["id"] for block in blocks if block.get("type") == "tool_use"))
    return path


def _blocks(row: dict[str, object]) -> list[dict[str, str]]:
    message = row.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, list) else []
