"""The ledger: all charges of an archive, to filter, look up and sum."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from threadline.account.shipped_prices import combine_digests
from threadline.account.totals import KEY_DESCRIPTIONS, TIME_KEYS, Calendar, merge_renamed_tools, sum_charges
from threadline.account.windows import WINDOW_HOURS, active_window, usage_windows
from threadline.errors import BadQuery
from threadline.model.ledger import CHARGE_COLUMNS, Charge, GroupKey, Key, MissingAgent, Row, Rows, Sum, UsageWindow
from threadline.model.places import Problem, is_uuid, match_ids, starts_id
from threadline.model.tables import Columns, Record, Table
from threadline.model.text import count
from threadline.model.times import Moment, TimeRange, Zone, in_zone, is_within, resolve_zone
from threadline.model.usage import Origin

if TYPE_CHECKING:
    from threadline.account.rates import Rates


class ChargeFilter(Struct, frozen=True):
    """Selects charges by time, by parts of the project's and the model's name, and by the start of the session's id.

    Every part that is given has to match. Parts of names are case-folded. A charge without a time is in no time range.
    `transcripts` are paths; one of them has to own the charge.
    """

    since: datetime | None = None
    until: datetime | None = None
    projects: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    exact_sessions: tuple[str, ...] = ()
    transcripts: frozenset[str] | None = None

    @property
    def has_time_range(self) -> bool:
        """Whether it limits the time."""
        return self.since is not None or self.until is not None

    @property
    def has_names(self) -> bool:
        """Whether it limits projects, models, sessions or transcripts."""
        is_named = self.projects or self.models or self.sessions or self.exact_sessions
        return bool(is_named) or self.transcripts is not None

    def combine(self, other: ChargeFilter) -> ChargeFilter:
        """Return a filter for the charges that both select."""
        transcripts = [paths for paths in (self.transcripts, other.transcripts) if paths is not None]
        return ChargeFilter(
            max((moment for moment in (self.since, other.since) if moment is not None), default=None),
            min((moment for moment in (self.until, other.until) if moment is not None), default=None),
            self.projects + other.projects,
            self.models + other.models,
            self.sessions + other.sessions,
            self.exact_sessions + other.exact_sessions,
            frozenset.intersection(*transcripts) if transcripts else None,
        )

    def matches_session(self, id_: str | None) -> bool:
        """Whether a session is selected: it has the exact ids, and starts with the others in any case."""
        return all(starts_id(session, id_) for session in self.sessions) and all(
            id_ == session for session in self.exact_sessions
        )

    def matches(self, charge: Charge | MissingAgent) -> bool:
        """Whether a charge is selected. A missing agent has no model, so it matches no model's name."""
        name = charge.model or "" if isinstance(charge, Charge) else ""
        return (
            (not self.has_time_range or is_within(charge.timestamp, self.since, self.until))
            and self.matches_session(charge.session)
            and all(project in charge.project.casefold() for project in self.projects)
            and all(model in name.casefold() for model in self.models)
            and (self.transcripts is None or _transcript_of(charge) in self.transcripts)
        )


AgentTypeReader = Callable[[Origin, Sequence[str]], str | None]
"""Returns the type of the agent that wrote rows: their origin, and their uuids."""


class ChargeSource(Protocol):
    """Where a ledger gets its charges and sums: a `ChargeList`, or the index.

    Both answer alike. A source may compute what it is asked for without building the charges.
    """

    @property
    def rates(self) -> Rates:
        """The prices that were applied."""

    @property
    def price_files(self) -> tuple[tuple[str, str], ...]:
        """The name and SHA-256 of each price file that was applied, in order."""

    @property
    def charges(self) -> Sequence[Charge]:
        """All charges."""

    def select(self, selection: ChargeFilter) -> ChargeSource:
        """Return the matching charges as a source."""

    def sums(self, names: GroupKey, zone: tzinfo, extra: Mapping[str, Key]) -> list[Row]:
        """Return the sums by keys, in any order."""

    def holding(self, session: str | None, transcripts: Collection[str]) -> Sequence[Charge]:
        """Return the charges that a session or one of the transcripts contains."""

    def messages(self, start: str) -> list[str]:
        """Return the ids of messages that start with a text, sorted."""

    def of_messages(self, ids: Collection[str]) -> Sequence[Charge]:
        """Return the charges of messages."""

    def of_sessions(self, ids: Collection[str | None]) -> Sequence[Charge]:
        """Return the charges of sessions."""

    def of_day(self, day: str, zone: tzinfo) -> Sequence[Charge]:
        """Return the charges of a day in a time zone."""

    def sessions(self) -> frozenset[str]:
        """Return the ids of the sessions that spent anything."""

    def missing_agents(self) -> tuple[MissingAgent, ...]:
        """Return the subagents whose transcripts are gone, oldest first."""

    def count_timeless(self) -> int:
        """Return how many charges have no time."""

    def windows(self, now: datetime, hours: float) -> list[UsageWindow]:
        """Return the usage windows and the gaps between them."""

    def fill_agent_types(self, read: AgentTypeReader | None) -> None:
        """Set the type of agents whose rows do not say it, with `read` or otherwise."""


class ChargeList:
    """Charges in memory."""

    def __init__(self, charges: Iterable[Charge], rates: Rates, missing: Iterable[MissingAgent] = ()) -> None:
        self.charges: Sequence[Charge] = tuple(charges)
        self.rates = rates
        self._missing = tuple(missing)

    @property
    def price_files(self) -> tuple[tuple[str, str], ...]:
        """The name and SHA-256 of each price file."""
        return self.rates.digests

    def select(self, selection: ChargeFilter) -> ChargeList:
        """Return the matching charges."""
        return ChargeList(filter(selection.matches, self.charges), self.rates, filter(selection.matches, self._missing))

    def sums(self, names: GroupKey, zone: tzinfo, extra: Mapping[str, Key]) -> list[Row]:
        """Return the sums by keys."""
        return sum_charges(self.charges, names, Calendar(zone), extra)

    def holding(self, session: str | None, transcripts: Collection[str]) -> Sequence[Charge]:
        """Return the charges that a session or one of the transcripts contains."""
        return [charge for charge in self.charges if _has_sighting_in(charge, session, transcripts)]

    def messages(self, start: str) -> list[str]:
        """Return the ids of messages that start with a text, sorted."""
        return sorted({charge.message for charge in self.charges if charge.message.startswith(start)})

    def of_messages(self, ids: Collection[str]) -> Sequence[Charge]:
        """Return the charges of messages."""
        return [charge for charge in self.charges if charge.message in ids]

    def of_sessions(self, ids: Collection[str | None]) -> Sequence[Charge]:
        """Return the charges of sessions."""
        return [charge for charge in self.charges if charge.session in ids]

    def of_day(self, day: str, zone: tzinfo) -> Sequence[Charge]:
        """Return the charges of a day in a time zone."""
        calendar = Calendar(zone)
        return [charge for charge in self.charges if calendar.day(charge.owner.time) == day]

    def sessions(self) -> frozenset[str]:
        """Return the ids of the sessions that spent anything."""
        return frozenset(charge.session for charge in self.charges if charge.session is not None)

    def missing_agents(self) -> tuple[MissingAgent, ...]:
        """Return the subagents whose transcripts are gone."""
        return self._missing

    def count_timeless(self) -> int:
        """Return how many charges have no time."""
        return sum(charge.timestamp is None for charge in self.charges)

    def windows(self, now: datetime, hours: float) -> list[UsageWindow]:
        """Return the usage windows and the gaps between them."""
        return usage_windows(self.charges, now=now, hours=hours)

    def fill_agent_types(self, read: AgentTypeReader | None) -> None:
        """Set the type of agents whose rows do not say it."""
        if read is None:
            return
        origins: dict[tuple[int, str], Origin] = {}
        for charge in self.charges:
            origin = charge.origin
            if origin.agent is None or origin.agent_type is not None:
                continue
            type_ = read(origin, charge.owner.uuids)
            if type_ is not None:
                # The agents inside a main transcript share an origin, so that each type gets one of its own.
                charge.owner.origin = origins.setdefault((id(origin), type_), replace(origin, agent_type=type_))


class Ledger(Table[Charge]):
    """Charges and their sums. Every charge links back to the lines it was counted from.

    Iterating gives the charges; as a table, each is a row. `problems` are transcripts that could not be read. `rates`
    are the prices that were applied. `calls` says whether the charges know which tools their messages call. Days are
    days in `zone`, the user's own by default. Methods may be given another.
    """

    noun = "charge"
    html_columns = ("timestamp", "session", "agent", "model", "input", "output", "cache_write", "cache_read", "amount")

    def __init__(
        self,
        charges: Iterable[Charge],
        rates: Rates,
        problems: Iterable[Problem] = (),
        *,
        missing: Iterable[MissingAgent] = (),
        calls: bool = True,
    ) -> None:
        self._fill(ChargeList(charges, rates, missing), problems, calls=calls)

    @classmethod
    def from_source(cls, source: ChargeSource, problems: Iterable[Problem] = (), *, calls: bool = True) -> Ledger:
        """Return the ledger of a source, which may be an index."""
        ledger = cls.__new__(cls)
        ledger._fill(source, problems, calls=calls)  # noqa: SLF001 - this is a constructor
        return ledger

    def _fill(self, source: ChargeSource, problems: Iterable[Problem], *, calls: bool) -> None:
        self._source = source
        self.problems = tuple(problems)
        self.calls = calls
        self.zone: tzinfo = resolve_zone()
        self._rows: dict[tuple[GroupKey, tzinfo, bool], Rows] = {}
        self._type_reader: AgentTypeReader | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: the charges themselves, whether they come from an index or not."""
        self._source.fill_agent_types(self._type_reader)
        source = ChargeList(self.charges, self.rates, self.missing_agents)
        return {**self.__dict__, "_source": source, "_rows": {}, "_type_reader": None}

    @property
    def columns(self) -> Columns:
        """The names and types of the columns of a charge."""
        return CHARGE_COLUMNS

    def _iter_records(self) -> Iterator[Record]:
        self._source.fill_agent_types(self._type_reader)
        return super()._iter_records()

    @property
    def rates(self) -> Rates:
        """The prices that were applied."""
        return self._source.rates

    @property
    def price_files(self) -> tuple[tuple[str, str], ...]:
        """The name and SHA-256 of each price file that was applied, in order. Does not load the prices."""
        return self._source.price_files

    @property
    def price_digest(self) -> str:
        """What identifies the prices that were applied."""
        return combine_digests(self.price_files)

    @property
    def charges(self) -> Sequence[Charge]:
        """The charges."""
        return self._source.charges

    def __iter__(self) -> Iterator[Charge]:
        return iter(self.charges)

    def __len__(self) -> int:
        return len(self.charges)

    def __repr__(self) -> str:
        return f"Ledger({self._describe()})"

    def _describe(self) -> str:
        return f"{count(len(self.charges), 'charge')}, {self.total.amount or 0:.2f} USD"

    @property
    def total(self) -> Sum:
        """The sum of all charges."""
        rows = next(iter(self._rows.values()), None)  # every grouping has the same total
        return rows.total if rows is not None else self.by().total

    def where(
        self,
        predicate: Callable[[Charge], bool] | None = None,
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        project: str | None = None,
        model: str | None = None,
        session: str | None = None,
        transcripts: Collection[str] | None = None,
        tz: Zone | None = None,
    ) -> Ledger:
        """Return a ledger with the matching charges only.

        `predicate` is called for each charge, and does not affect `missing_agents`. `since` and `until` are inclusive:
        datetimes, dates, or text such as `2026-11-03` or `7d`. A day is the whole day; days and times without an offset
        are in the time zone `tz`, by default the ledger's. `project` and `model` match names that contain the text.
        `session` is an id or the start of ids. `transcripts` are paths: only what these files own. Charges that are
        left out still count against copies: a message that another session owns does not come back when that session
        is left out.

        Raises:
            BadQuery: a time cannot be understood, or `since` is after `until`.
        """
        if predicate is not None:
            matching = self.where(
                since=since, until=until, project=project, model=model, session=session, transcripts=transcripts, tz=tz
            )
            return self._with_source(ChargeList(filter(predicate, matching), self.rates, matching.missing_agents))
        if all(value is None for value in (since, until, project, model, session, transcripts)):
            return self
        time = TimeRange.parse(since, until, tz=self._zone_of(tz))
        exact = _exact_id(session, self.sessions) if session is not None else None
        selection = ChargeFilter(
            time.since,
            time.until,
            (project.casefold(),) if project is not None else (),
            (model.casefold(),) if model is not None else (),
            (session,) if session is not None and exact is None else (),
            (exact,) if exact is not None else (),
            frozenset(transcripts) if transcripts is not None else None,
        )
        return self._with_source(self._source.select(selection))

    def _with_source(self, source: ChargeSource) -> Ledger:
        ledger = Ledger.from_source(source, self.problems, calls=self.calls)
        ledger.zone = self.zone
        ledger._type_reader = self._type_reader  # noqa: SLF001 - of the same class
        return ledger

    def _zone_of(self, zone: Zone | None) -> tzinfo:
        return self.zone if zone is None else resolve_zone(zone)

    def holding(self, session: str | None = None, transcripts: Collection[str] = ()) -> Sequence[Charge]:
        """Return the charges that a session or one of the transcripts contains, copies of others' messages included."""
        return self._source.holding(session, transcripts)

    def messages(self, start: str) -> list[str]:
        """Return the ids of messages that start with a text, sorted."""
        return self._source.messages(start)

    def of_messages(self, ids: Collection[str]) -> Sequence[Charge]:
        """Return the charges of messages, by id."""
        return self._source.of_messages(ids)

    def of_sessions(self, ids: Collection[str | None]) -> Sequence[Charge]:
        """Return the charges of sessions, by their full ids."""
        return self._source.of_sessions(ids)

    def of_day(self, day: str, zone: Zone | None = None) -> Sequence[Charge]:
        """Return the charges of a day in a time zone; by default the ledger's."""
        return self._source.of_day(day, self._zone_of(zone))

    @property
    def sessions(self) -> frozenset[str]:
        """The ids of the sessions that spent anything."""
        return self._source.sessions()

    @property
    def missing_agents(self) -> tuple[MissingAgent, ...]:
        """The subagents whose transcripts are gone, oldest first. What they spent is not in any total."""
        return self._source.missing_agents()

    @property
    def timeless(self) -> int:
        """How many charges have no time."""
        return self._source.count_timeless()

    def windows(self, *, now: datetime, hours: float = WINDOW_HOURS) -> list[UsageWindow]:
        """Return the five-hour windows that limits count by, and the gaps between them, oldest first."""
        return self._source.windows(now, hours)

    def current_window(self, *, since: datetime, now: datetime) -> tuple[UsageWindow | None, bool]:
        """Return the five-hour window that is running, by charges after `since`, and whether that is certain.

        A window begins where the previous one ended, so only a pause of five hours proves where one begins.
        """
        windows = self.where(since=since, until=now).windows(now=now)
        times = [
            (window.first, window.last) for window in windows if window.first is not None and window.last is not None
        ]
        length = timedelta(hours=WINDOW_HOURS)
        if not times or now - times[-1][1] >= length:
            return None, True  # whenever the last window began, it is over
        has_pause = any(window.is_gap for window in windows)
        return active_window(windows), has_pause or times[0][0] - since > length

    def fill_agent_types(self, read: AgentTypeReader) -> None:
        """Set how to find out the type of agents whose rows do not say it; called when a sum by `agent-type` needs it.

        `read` returns the type for an origin and the uuids of its rows.
        """
        self._type_reader = read
        self._rows.clear()

    def by(
        self,
        *names: str,
        zone: Zone | None = None,
        extra: Mapping[str, Key] | None = None,
        exact_tools: bool = False,
    ) -> Rows:
        """Sum the charges by keys: `ledger.by("project", "model")`. Every charge is in exactly one row.

        Days are days in `zone`; the default is the ledger's, which is the user's own. Rows are sorted by time, or by
        cost. With `tool`, a charge is shared equally by the calls that its message makes. A renamed tool counts under
        its current name (`View` under `Read`), unless `exact_tools`. `extra` are keys of your own: a name and a
        function that returns a charge's value.

        Raises:
            BadQuery: there is no such key, or no such zone.
        """
        extra_keys = extra or {}
        own_zone = self._zone_of(zone)
        for name in names:
            if name not in KEY_DESCRIPTIONS and name not in extra_keys:
                raise BadQuery(f"Unknown key {name!r}. Group by {', '.join((*KEY_DESCRIPTIONS, *extra_keys))}.")
        if "tool" in names and not self.calls:
            raise BadQuery("This ledger was read without calls and cannot be summed by tool. Read it with calls.")
        if len(set(names)) < len(names):
            raise BadQuery("A key is used twice. Use each key once.")
        if extra_keys:
            return self._sum(names, own_zone, extra_keys, exact_tools=exact_tools)
        cache_key = names, own_zone, exact_tools
        if cache_key not in self._rows:  # a report, its total and its notes often need the same rows
            self._rows[cache_key] = self._sum(names, own_zone, extra_keys, exact_tools=exact_tools)
        return self._rows[cache_key]

    def _sum(self, names: GroupKey, zone: tzinfo, extra: Mapping[str, Key], *, exact_tools: bool) -> Rows:
        if "agent-type" in names:
            self._source.fill_agent_types(self._type_reader)
        rows = self._source.sums(names, zone, extra)
        if "tool" in names and not exact_tools:
            rows = merge_renamed_tools(rows)
        return Rows(names, tuple(sort_rows(rows, names)))


def last_day_with_usage(ledger: Ledger, now: datetime, zone: tzinfo) -> str | None:
    """Return the last day with usage, like `2026-01-05`; None if there is none. Times in the future do not count."""
    today = in_zone(now, zone).date().isoformat()
    days = (row.keys["day"] for row in ledger.by("day", zone=zone))
    return max((day for day in days if day[:1].isdecimal() and day <= today), default=None)


def _exact_id(session: str, sessions: Iterable[str]) -> str | None:
    """Return the id that a text is, as it is written or else in another case; None if it is only the start of ids."""
    matches = match_ids(session, sessions)
    if len(matches) == 1 and matches[0].lower() == session.lower():
        return matches[0]
    return session if is_uuid(session) and not matches else None


def _transcript_of(charge: Charge | MissingAgent) -> str:
    return charge.origin.transcript if isinstance(charge, Charge) else charge.place.transcript


def _has_sighting_in(charge: Charge, session: str | None, transcripts: Collection[str]) -> bool:
    """Whether a session or one of the transcripts contains a charge."""
    return any(
        (session is not None and sighting.origin.session == session) or sighting.origin.transcript in transcripts
        for sighting in charge.sightings
    )


def sort_rows(rows: list[Row], names: GroupKey) -> list[Row]:
    """Sort rows key by key, so that the parts of a nested report stay together."""
    if not names:
        return rows
    name, *rest = names
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.keys[name], []).append(row)
    if name in TIME_KEYS:
        order = sorted(groups)
    else:
        weights = {value: group[0] if len(group) == 1 else Sum.of(group) for value, group in groups.items()}
        order = sorted(
            groups,
            key=lambda value: ((weights[value].amount or Decimal(0)).copy_negate(), -weights[value].tokens, value),
        )
    return [row for value in order for row in sort_rows(groups[value], tuple(rest))]
