"""The types of agents that older versions kept beside their transcripts: read only where they are asked for."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from threadline.errors import Error
from threadline.model.charge import Charge
from threadline.model.found import Found, Home, SideFile, SideFileKind
from threadline.model.side import AgentMeta
from threadline.parse import read_side_file


def fill_agent_types(found: Iterable[Found], charges: Iterable[Charge]) -> None:
    """Give every charge of an agent the agent's type, where its rows do not say it and its side file does."""
    metas = {str(one.path): one.meta for home in found for one in home.transcripts if one.meta is not None}
    read: dict[str, str | None] = {}
    for charge in charges:
        origin = charge.origin
        if origin.agent is None or origin.agent_type is not None:
            continue
        meta = metas.get(origin.transcript)
        if meta is not None:
            if origin.transcript not in read:
                read[origin.transcript] = _type(meta, Home(Path(origin.home), "path"))
            origin.agent_type = read[origin.transcript]


def _type(meta: Path, home: Home) -> str | None:
    with suppress(Error):
        content = read_side_file(SideFile(meta, home, SideFileKind.AGENT_META, 0)).content
        return content.agent_type if isinstance(content, AgentMeta) else None
    return None
