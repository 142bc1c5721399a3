"""Surveyed: what can be told with an index or without: there, transcripts are read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from threadline.archive.indexed import Indexed
from threadline.archive.progress import size_of
from threadline.errors import NotFound

if TYPE_CHECKING:
    from threadline.account.ledger import Ledger
    from threadline.account.rates import Rates
    from threadline.load import Session
    from threadline.model.found import Found, Transcript
    from threadline.survey import history, scan
    from threadline.survey.doctor import Examination
    from threadline.survey.failures import Failure
    from threadline.survey.follow import Follower
    from threadline.survey.overview import Overview
    from threadline.survey.sessions import Listing, Wanted
    from threadline.survey.today import Named, Recent


class Surveyed(Indexed):
    """Sessions, ledger, failures, secrets: each answer is the one that reading everything gives."""

    def overview(self) -> Overview:
        """All homes at a glance."""
        from threadline.find.looking import look, side_file_counts
        from threadline.survey.overview import overview

        known = self._fresh
        if known is not None and not known.problems:
            from threadline.index.found import found as known_found
            from threadline.index.lights import Lights

            counts = [side_file_counts(home) for home in self.homes]
            looked = known_found(known.connection, self.homes, [one.problems for one in counts])
            glances = Lights(known.connection).glances
            return overview(looked, glances=glances, side_files=[one.kinds for one in counts])
        found = [look(home) for home in self.homes]
        if known is not None:
            from threadline.index.lights import Lights

            return overview(found, glances=Lights(known.connection).glances)
        with self._showing("Reading", size_of(found)) as advance:
            return overview(found, jobs=self._jobs, progress=advance)

    def sessions(self, wanted: Wanted | None = None) -> Listing:
        """The sessions that are wanted, newest first."""
        from threadline.survey.sessions import sessions

        known = self._fresh
        if known is not None:
            from threadline.index.lights import Lights

            return sessions(self.found, wanted, reader=Lights(known.connection))
        with self._showing("Reading", size_of(self.found)) as advance:
            return sessions(self.found, wanted, jobs=self._jobs, progress=advance)

    def path(self, name: str) -> Path:
        """The transcript of a session or an agent, by the start of its id; `last` is the newest session's.

        Raises:
            NotFound: there is none of that name.
            Ambiguous: there are several; the text lists them.
        """
        from threadline.survey.sessions import Wanted

        if name != "last":
            return self.transcript(name).path
        newest = self.sessions(Wanted(limit=1)).sessions
        if not newest:
            raise NotFound("There is no session yet; name a home with --home, or a transcript.")
        return newest[0].path

    def transcript(self, name: str) -> Transcript:
        """The transcript of a session or an agent, by the start of its id.

        Raises:
            NotFound: there is none of that name.
            Ambiguous: there are several; the text lists them.
        """
        from threadline.find.at_path import by_id

        return by_id(name, self.found)

    def directory_of(self, transcript: Path, directories: Sequence[str]) -> str | None:
        """Of the directories that a session was in, the one it belongs to: its folder is named after that.

        It is the first where none fits, and None where there are none.
        """
        from threadline.find.folder_names import folder_matches

        folder = transcript.parent.name
        named = (one for one in directories if folder_matches(folder, one))
        return next(named, directories[0] if directories else None)

    def at(self, path: str | Path, *, session: bool = False) -> Found:
        """All that lies at a path, of these homes or not: a home, a folder with transcripts, or one of them.

        With `session`, the path is a transcript's, and what else belongs to its session is found with it.

        Raises:
            NotFound: there is nothing at that path.
            Unreadable: it cannot be looked at.
            BadQuery: it is a file of a home, and no transcript.
        """
        from threadline.find.at_path import at

        found = at(path)
        if not session:
            return found
        from threadline.find.session_files import with_session

        return with_session(found)

    def session(self, name: str) -> Session:
        """A session, read whole: by the start of its id, or `last`.

        Raises:
            NotFound: there is none of that name.
            Ambiguous: there are several; the text lists them.
        """
        from threadline.load import read

        return read(self.path(name))

    def ledger(self, prices: Rates | None = None, *, calls: bool = True) -> Ledger:
        """What was spent, every message counted once. Without `calls` it cannot be summed by tool.

        `prices` are the rates to take in place of those that come with threadline.
        """
        from threadline.account.rates import shipped

        known = self._fresh
        if known is not None and not known.problems:
            from threadline.index.ledger import IndexedLedger

            return IndexedLedger(known.connection, prices)
        from threadline.survey.ledger import ledger_of

        with self._showing("Reading", size_of(self.found)) as advance:
            return ledger_of(self.found, prices or shipped(), jobs=self._jobs, progress=advance, calls=calls)

    def titles(self, sessions: Collection[str]) -> dict[str, str]:
        """What these sessions are called, as far as that is known."""
        known = self._fresh
        if known is not None:
            from threadline.index.titles import titles

            return titles(known.connection, sessions)
        from threadline.survey.session_titles import session_titles

        return session_titles(self.found, sessions)

    def history(self, wanted: history.Wanted | None = None) -> history.History:
        """What was typed in all projects, newest first: its `prompts()`, and whether their sessions are gone."""
        from threadline.survey.history import History

        return History(self.found, wanted)

    def failures(self, since: datetime | None = None) -> list[Failure]:
        """What went wrong in all sessions, in order of time, each once.

        With `since`, only transcripts that were written to from then on are read.
        """
        from threadline.survey.failures import everywhere

        # What was last written before then holds nothing from after it.
        oldest = since.timestamp() * 1e9 if since is not None else 0
        written = [one for home in self.found for one in home.transcripts if one.size and one.mtime_ns >= oldest]
        with self._showing("Reading", sum(one.size for one in written)) as advance:
            return everywhere(written, jobs=self._jobs, progress=advance)

    def look(self) -> list[Found]:
        """All that lies in the homes, side files too."""
        from threadline.find.looking import look

        return [look(home) for home in self.homes]

    def examine(self, found: Sequence[Found] | None = None, *, check: bool = False) -> Examination:
        """Read everything, or what was `found` somewhere: what is wrong, what is new, how much was understood.

        With `check`, prove for each transcript that its entries give it back.
        """
        from threadline.survey.doctor import examine_found

        found = found if found is not None else self.look()
        with self._showing("Reading", size_of(found)) as advance:
            return examine_found(found, check=check, jobs=self._jobs, progress=advance)

    def scan(self, wanted: scan.Wanted | None = None, found: Sequence[Found] | None = None) -> list[scan.Scanned]:
        """Which secrets stand in each file of the homes, or of what was `found` somewhere."""
        from threadline.survey.scan import files_of, scan

        files = files_of(found if found is not None else self.look())
        with self._showing("Scanning", sum(one.size for one in files)) as advance:
            return list(scan(files, wanted, jobs=self._jobs, progress=advance))

    def recent(self, named: Named, rates: Rates, *, since: datetime, seconds: float) -> Recent:
        """A session and what was spent since a moment, for a line that is written anew on every prompt.

        An index is asked where there is one; without, transcripts are read for no longer than so many seconds.
        """
        from threadline.account.shipped_prices import shipped_digest

        known = self._fresh if self.index.exists() and rates.digest == shipped_digest() else None
        if known is not None and not known.problems:
            from threadline.index.recent import recent

            return recent(known.connection, named, rates, since=since)
        from threadline.survey import today

        return today.recent(named, self.homes, rates, since=since, seconds=seconds)

    def watch(self, session: str | Path | None = None, *, since: datetime | None = None) -> Follower:
        """Follows the transcripts as they grow: of all sessions, or of one and its agents.

        A session is named by the start of its id, or by a path, which may be in another home or in none.

        Raises:
            NotFound: there is no such session.
        """
        from threadline.survey.follow import Follower

        if session is None:
            return Follower(self.homes, since=since)
        if isinstance(session, Path):
            return _at(session, since)
        found = self.transcript(session)
        if found.session is None:
            return Follower(path=found.path, since=since)
        return Follower(self.homes, session=found.session, since=since)


def _at(path: Path, since: datetime | None) -> Follower:
    """Who follows the session of a transcript: wherever it goes, where that lies in a home."""
    from threadline.find.home_places import homes
    from threadline.find.session_files import transcript_at
    from threadline.survey.follow import Follower

    place = path.absolute()
    found = transcript_at(place)
    if place.parents[1].name != "projects" or found.session is None:
        return Follower(path=place, since=since)
    return Follower(homes(place.parents[2]), session=found.session, since=since)
