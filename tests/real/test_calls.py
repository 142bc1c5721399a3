"""The index has the same calls, files, todos and agents as the sessions of the real home."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from tests.index.session_rows import rows_from_index, rows_from_transcripts, sessions
from tests.real.client import SHARED

from threadline.find import homes
from threadline.index import open_read_only, refresh_index

HOME = SHARED / "corpus/home"

pytestmark = [pytest.mark.real, pytest.mark.skipif(not HOME.is_dir(), reason="../shared/corpus is not there")]


def test_the_index_equals_the_real_sessions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Calls, files, compactions, lists and agents are equal for every session, except for an unfinished line."""
    refresh_index(tmp_path / "index.sqlite", homes(HOME))
    counts: Counter[str] = Counter()
    with closing(open_read_only(tmp_path / "index.sqlite")) as connection:
        for session in sessions(HOME):
            expected, actual = rows_from_transcripts(session), rows_from_index(connection, session)
            last = {str(agent.entries[-1].place) for agent in (session.main, *session.agents) if agent.entries}
            links = dict(actual.pop("links"))
            assert dict(expected.pop("links")).items() <= links.items()
            for name, rows in actual.items():
                # A line that was being written when the file was copied is left for the next refresh.
                missing = [row for row in expected[name] if row not in rows and not any(place in row for place in last)]
                assert missing == []
                assert [row for row in rows if row not in expected[name]] == []
                counts[name] += len(rows)
    with capsys.disabled():
        print(f"\nof real sessions: {dict(counts)}")  # noqa: T201 - figures
    assert counts["calls"] >= 1000
