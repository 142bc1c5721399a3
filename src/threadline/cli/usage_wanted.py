"""Which charges are wanted, and why there are none."""

from __future__ import annotations

from datetime import datetime, tzinfo

from msgspec import Struct

from threadline.account.keys import NONE
from threadline.account.ledger import Ledger
from threadline.archive import Archive
from threadline.errors import Ambiguous
from threadline.model.zone import in_zone
from threadline.render.figures import some

_ID = 8


class Wanted(Struct, frozen=True):
    """Which charges to sum: all that fit every one of these. `session` is the start of an id, or `last`."""

    project: str | None = None
    model: str | None = None
    session: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def of(self, ledger: Ledger, archive: Archive) -> Ledger:
        """The ledger of the charges that are wanted."""
        return self._in_time(self._of_session(self._of_model(self._of_project(ledger)), ledger, archive))

    def why(self, ledger: Ledger, archive: Archive, zone: tzinfo) -> str:
        """Why there is no charge, and what there would be."""
        if not ledger.charges:
            return f"Nothing was spent: no model replied in {some(str(home.path) for home in archive.homes)}."
        told = f"No charge of {ledger.total.charges:,} fits {' and '.join(self._said())}"
        project = self._of_project(ledger)
        if not project.charges:
            return f"{told}; projects are {some(_values(ledger, 'project'))}."
        model = self._of_model(project)
        if not model.charges:
            return f"{told}; models are {some(_values(project, 'model'))}."
        session = self._of_session(model, ledger, archive)
        if not session.charges:
            return f"{told}; sessions are {some(one[:_ID] for one in _values(model, 'session'))}."
        days = [in_zone(when, zone).date() for one in session if (when := one.timestamp) is not None]
        return f"{told}; what else fits is from {min(days)} to {max(days)}." if days else f"{told}."

    def _said(self) -> list[str]:
        own = {"project": self.project, "model": self.model, "session": self.session}
        times = {"since": self.since, "until": self.until}
        given = [f"--{name} {value!r}" for name, value in own.items() if value is not None]
        return given + [f"--{name}" for name, value in times.items() if value is not None]

    def _of_project(self, ledger: Ledger) -> Ledger:
        return ledger if self.project is None else ledger.where(project=self.project)

    def _of_model(self, ledger: Ledger) -> Ledger:
        return ledger if self.model is None else ledger.where(model=self.model)

    def _of_session(self, ledger: Ledger, whole: Ledger, archive: Archive) -> Ledger:
        return ledger if self.session is None else ledger.where(session=_session(self.session, whole, archive))

    def _in_time(self, ledger: Ledger) -> Ledger:
        timed = self.since is not None or self.until is not None
        return ledger.where(since=self.since, until=self.until) if timed else ledger


def _values(ledger: Ledger, name: str) -> list[str]:
    return [row.keys[name] for row in ledger.by(name)]


def _session(wanted: str, ledger: Ledger, archive: Archive) -> str:
    """The id of the session that was named; what was named where there is none, so that nothing is found."""
    if wanted == "last":
        from threadline.survey.sessions import Wanted as WantedSessions

        newest = archive.sessions(WantedSessions(limit=1)).sessions
        return str(newest[0].id) if newest else wanted
    start = wanted.lower()
    ids = [one for one in _values(ledger, "session") if one != NONE]
    fitting = sorted(one for one in ids if one.lower().startswith(start))
    exact = [one for one in fitting if one.lower() == start]
    if len(fitting) > 1 and not exact:
        raise Ambiguous(f"{wanted!r} is the start of {len(fitting)} sessions' ids; write more of it: {some(fitting)}.")
    return (exact or fitting or [wanted])[0]
