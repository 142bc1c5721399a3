"""Read a session and find out what caused its costs, and which were avoidable."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from threadline.account import Ledger
from threadline.errors import Error
from threadline.insight.waste import find_waste
from threadline.insight.waste.detector import WasteContext
from threadline.load import read
from threadline.model.homes import Home
from threadline.model.insight.attribution import Attribution
from threadline.model.insight.waste import Waste, WasteLimits
from threadline.model.session import Session
from threadline.thread import assemble_agents


class SessionInsight(Struct, frozen=True):
    """What caused a session's costs, and which were avoidable."""

    attribution: Attribution
    waste: tuple[Waste, ...]


def read_insight(
    main: Path, ledger: Ledger, limits: WasteLimits, *, homes: Sequence[Home] = (), project: str | None = None
) -> SessionInsight:
    """Read the session of a main transcript, and attribute these charges of it.

    If the transcript can no longer be read, each request is a cause by itself.
    """
    try:
        session: Session = read(main, continued=False, homes=homes)
    except Error:
        agent, _ = assemble_agents((), [], [])
        session = Session(id=None, path=main, main=agent)
    context = WasteContext(session, ledger, project)
    return SessionInsight(context.attribution, tuple(find_waste(context, limits)))
