"""Chosen: which charges of the index are asked for."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from msgspec import Struct

from threadline.account.ledger import within
from threadline.index.texts import as_path
from threadline.model.charge import Charge


class Chosen(Struct, frozen=True):
    """All that fit every one of these: a time, texts that project and model hold, starts of the session's id."""

    since: datetime | None = None
    until: datetime | None = None
    projects: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()

    @property
    def is_timed(self) -> bool:
        """Whether a time is asked for; what has none is then left out."""
        return self.since is not None or self.until is not None

    @property
    def is_named(self) -> bool:
        """Whether projects, models or sessions are asked for."""
        return bool(self.projects or self.models or self.sessions)

    def narrowed(
        self,
        since: datetime | None,
        until: datetime | None,
        project: str | None,
        model: str | None,
        session: str | None,
    ) -> Chosen:
        """Those that fit these as well."""
        return Chosen(
            max((one for one in (self.since, since) if one is not None), default=None),
            min((one for one in (self.until, until) if one is not None), default=None),
            self.projects + ((project.casefold(),) if project is not None else ()),
            self.models + ((model.casefold(),) if model is not None else ()),
            self.sessions + ((session,) if session is not None else ()),
        )

    def has(self, charge: Charge) -> bool:
        """Whether a charge is asked for."""
        return (
            (not self.is_timed or within(charge.timestamp, self.since, self.until))
            and all(charge.session is not None and charge.session.startswith(one) for one in self.sessions)
            and all(one in charge.project.casefold() for one in self.projects)
            and all(one in (charge.model or "").casefold() for one in self.models)
        )

    def conditions(self, connection: sqlite3.Connection) -> list[str]:
        """What SQL has to ask, beside the time: of an origin `o`, its transcript `t`, and a `rate_id`."""
        made: list[str] = []
        if self.projects:
            names = connection.execute("SELECT project_id, COALESCE(path, folder) FROM projects")
            fitting = [
                number for number, name in names if all(one in as_path(name).casefold() for one in self.projects)
            ]
            made.append(f"t.project_id IN ({', '.join(map(str, fitting))})")
        if self.models:
            models = connection.execute("SELECT rate_id, model FROM rates")
            fitting = [
                number for number, model in models if all(one in (model or "").casefold() for one in self.models)
            ]
            made.append(f"rate_id IN ({', '.join(map(str, fitting))})")
        made += (f"substr(o.session, 1, {len(one)}) = {quoted(one)}" for one in self.sessions)
        return made


def quoted(text: str) -> str:
    """Text as SQL writes it; what a database cannot hold fits nothing."""
    try:
        return f"CAST(x'{text.encode().hex()}' AS TEXT)"
    except UnicodeEncodeError:
        return "NULL"
