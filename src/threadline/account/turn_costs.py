"""What each turn and each agent of a session spent.

A charge belongs to the turn that contains its message. What an agent spent belongs to the turn in which the agent was
started, even if it continued into the next one.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from threadline.account.ledger import Ledger
from threadline.model.entries import Entry
from threadline.model.ledger import Charge, SessionCosts
from threadline.model.places import AgentId
from threadline.model.session import Session

_MAX_PROMPT = 200


class TurnTable(Struct, frozen=True):
    """The turn and the agent of every row of a session, to look up charges.

    Rows are identified by their uuid; those without one by `TRANSCRIPT:LINE`. A row that is repeated is where it was
    first: in the main thread if that has it, and in a side agent only if no other agent has it. `prompts` are the
    prompts by turn.
    """

    rows: dict[str, tuple[int | None, AgentId | None]]
    prompts: dict[int, str]

    @staticmethod
    def of(session: Session) -> TurnTable:
        """Build the table of a session."""
        rows: dict[str, tuple[int | None, AgentId | None]] = {}

        def add(entries: Iterable[Entry], turn: int | None, agent: AgentId | None) -> None:
            for entry in entries:
                rows.setdefault(_row_key(entry.uuid, str(entry.place)), (turn, agent))

        for turn in session.main.turns:
            add(turn.entries, turn.number, None)
        # Some agents repeat the rows of the thread that started them; a compaction's side agent repeats all of them.
        agents = sorted(session.agents, key=lambda agent: agent.side is not None)
        calls = session.calls_by_id
        for agent in agents:
            call = calls.get(agent.link.call) if agent.link.call is not None else None
            started = call.turn if call is not None else None
            add(agent.entries, started, agent.id)
        prompts = {turn.number: turn.act.text[:_MAX_PROMPT] for turn in session.turns if turn.act is not None}
        return TurnTable(rows, prompts)

    def locate(self, charge: Charge) -> tuple[int | None, AgentId | None]:
        """The turn that a charge belongs to, None if it is not known, and the agent."""
        for sighting in (charge.owner, *charge.sightings):
            for uuid, line in zip(sighting.uuids, sighting.lines, strict=True):
                row = self.rows.get(_row_key(uuid, f"{sighting.origin.transcript}:{line}"))
                if row is not None:
                    return row
        return None, None


def _row_key(uuid: str | None, place: str) -> str:
    return uuid or place


def cost_by_turn(session: Session, ledger: Ledger) -> SessionCosts:
    """Add up what each turn and each agent of a session spent. The ledger has the session's charges only."""
    table = TurnTable.of(session)
    by_turn: dict[int | None, list[Charge]] = {}
    by_agent: dict[AgentId, list[Charge]] = {}
    for charge in ledger:
        turn, agent = table.locate(charge)
        by_turn.setdefault(turn, []).append(charge)
        if agent is not None:
            by_agent.setdefault(agent, []).append(charge)
    return SessionCosts(
        ledger.total,
        {turn: Ledger(group, ledger.rates).total for turn, group in by_turn.items()},
        {agent: Ledger(group, ledger.rates).total for agent, group in by_agent.items()},
    )
