"""The types of agents that older versions kept beside their transcripts: read only where they are asked for."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from threadline.account.ledger import Ledger
from threadline.errors import Error
from threadline.model.found import Found, Home, SideFile, SideFileKind
from threadline.model.side import AgentMeta
from threadline.parse import read_side_file


def fill_agent_types(found: Iterable[Found], ledger: Ledger) -> None:
    """Give every charge of an agent the agent's type, where its rows do not say it and its side file does."""
    metas = {str(one.path): one.meta for home in found for one in home.transcripts if one.meta is not None}

    def read(transcript: str, home: str) -> str | None:
        meta = metas.get(transcript)
        return _type(meta, Home(Path(home), "path")) if meta is not None else None

    ledger.fill_agent_types(read)


def _type(meta: Path, home: Home) -> str | None:
    with suppress(Error):
        content = read_side_file(SideFile(meta, home, SideFileKind.AGENT_META, 0)).content
        return content.agent_type if isinstance(content, AgentMeta) else None
    return None
