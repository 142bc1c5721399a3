"""Tool definitions of MCP servers that were sent with every request and never called.

Only transcripts that contain the tools as they were sent (from 2.1.325 on) show this. The size of the definitions is
their share of the measured system prompt.
"""

from __future__ import annotations

from collections.abc import Iterator

from threadline.insight.waste.facts import Detector, Finding, WasteContext
from threadline.model.insight.attribution import CauseKind
from threadline.model.insight.waste import WasteLimits
from threadline.model.text import mcp_server

_PREFIX = "tools of "


def detect(facts: WasteContext, _limits: WasteLimits) -> Iterator[Finding]:
    """Yield each server without a call, by agent."""
    used = {(call.agent, mcp_server(call.tool)) for call in facts.calls}
    for row in facts.attribution.rows:
        server = row.name.removeprefix(_PREFIX) if row.name is not None and row.name.startswith(_PREFIX) else None
        if row.kind is not CauseKind.SYSTEM or server is None or (row.agent, server) in used:
            continue
        agent = facts.session.agent(row.agent)
        yield Finding(
            f"MCP server {server}",
            f"its tools were sent with {row.requests:,} requests, and none was called",
            (agent.entries[0].place,) if agent is not None and agent.entries else (),
            row.tokens,
            row.amount,
            row.estimated,
            row.agent,
        )


UNUSED_TOOLS = Detector(
    "unused-tools", "Disable the server for this project, or connect it only when it is needed.", detect
)
