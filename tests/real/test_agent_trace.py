"""Agent Trace records of every file that the sessions of the corpus wrote, checked with the published JSON Schema."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from tests.insight.agent_trace_schema import SCHEMA
from tests.real.client import SHARED

import threadline
from threadline.errors import NotFound
from threadline.insight import agent_trace_record

HOME = SHARED / "corpus/home"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not HOME.is_dir(), reason="../shared/corpus is not there")]


def test_records_of_every_session_are_valid() -> None:
    """Each record is valid, and gives every line that a session wrote to a conversation of that session.

    A file whose text no session recorded has no record, and says so.
    """
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema, of the extra `test`, is not installed")
    validator = jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.FormatChecker())
    records = missing = 0
    with threadline.open(HOME, keep=False) as archive:
        sessions = [str(session.id) for session in archive.sessions()]
        paths = {str(file.path) for session in sessions for file in archive.files(session=session) if file.writes}
        for path in sorted(paths):
            try:
                blame = archive.blame(path, git=False)
            except NotFound:
                missing += 1
                continue
            record = agent_trace_record(blame, tool_version="1.0", recorded=datetime(2026, 1, 6, tzinfo=UTC))
            value = json.loads(json.dumps(record, default=str))
            assert list(validator.iter_errors(value)) == []
            by_agents = sum(
                lines["end_line"] - lines["start_line"] + 1
                for file in value["files"]
                for conversation in file["conversations"]
                if conversation["contributor"]["type"] == "ai"
                for lines in conversation["ranges"]
            )
            assert by_agents == sum(line.known and line.session is not None for line in blame.lines)
            records += 1
    assert (records > 300, missing < records / 10) == (True, True)
