"""What agents did in real transcripts: the index tells what the sessions tell."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from tests.index.work_rows import indexed, of_session, sessions
from tests.real.client import SHARED

from threadline.find import homes
from threadline.index import open_read_only, refresh_index

HOME = SHARED / "corpus/home"

pytestmark = [pytest.mark.real, pytest.mark.skipif(not HOME.is_dir(), reason="../shared/corpus is not there")]


def test_the_index_tells_of_real_work_what_sessions_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Calls, files, compactions, lists and agents are those of every session, save for a line that is not finished."""
    refresh_index(tmp_path / "index.sqlite", homes(HOME))
    counted: Counter[str] = Counter()
    with closing(open_read_only(tmp_path / "index.sqlite")) as connection:
        for session in sessions(HOME):
            told, found = of_session(session), indexed(connection, session)
            last = {str(agent.entries[-1].place) for agent in (session.main, *session.agents) if agent.entries}
            links = dict(found.pop("links"))
            assert dict(told.pop("links")).items() <= links.items()
            for name, rows in found.items():
                # What was being written when the file was copied is left for the next refresh.
                lost = [one for one in told[name] if one not in rows and not any(place in one for place in last)]
                assert lost == []
                assert [row for row in rows if row not in told[name]] == []
                counted[name] += len(rows)
    with capsys.disabled():
        print(f"\nof real sessions: {dict(counted)}")  # noqa: T201 - figures
    assert counted["calls"] >= 1000
