"""However transcripts grow, in parts and in several files, the index equals a rebuilt one."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from tests.changing_home import ChangingHome
from tests.index.content import content, rebuilt_content
from tests.index.test_refresh import _refresh
from tests.profiles import is_quick_run, scale_examples
from tests.transcripts import write as write_lines

from threadline.index import open_read_only

SESSION = "5e551011-0000-4000-8000-000000000001"
_HEAD = f'"sessionId":"{SESSION}","version":"2.1.0","timestamp":"2026-01-05T09:00:0'
CALL = (
    f'{{"type":"assistant","uuid":"u1",{_HEAD}3.000Z","message":{{"id":"msg_011111111111111111111111",'
    '"role":"assistant","model":"claude-sonnet-5","stop_reason":"tool_use","content":[{"type":"tool_use",'
    '"id":"toolu_1","name":"WebSearch","input":{"query":"x"}}],"usage":{"input_tokens":5,"output_tokens":7}}}\n'
)
RESULT = (
    f'{{"type":"user","uuid":"u2","parentUuid":"u1",{_HEAD}5.000Z","message":{{"role":"user","content":[{{"type":'
    '"tool_result","tool_use_id":"toolu_1","content":"found"}]},"toolUseResult":{"query":"x","searchCount":3}}\n'
)
OTHER = f'{{"type":"user","uuid":"u3",{_HEAD}4.000Z","message":{{"role":"user","content":"meanwhile"}}}}\n'


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(3))
def test_equals_a_rebuilt_index_while_the_home_changes(tmp_path: Path, seed: int) -> None:
    """Appends that end anywhere in a line, forks, truncations, replacements, renames and deletions."""
    growing = ChangingHome(tmp_path / "home", seed, 0.6 if is_quick_run() else 2, max_bytes=40_000)
    index = tmp_path / "index.sqlite"
    for _ in range(max(3, scale_examples(6))):
        _refresh(growing.path, index)
        assert content(index) == rebuilt_content(growing.path, tmp_path)
        growing.change()


def test_charges_a_web_search_whose_result_comes_later(tmp_path: Path) -> None:
    """A web search is known by its result. If that is read after the call, the message is charged again."""
    home, index = tmp_path / "home", tmp_path / "index.sqlite"
    path = write_lines(home / f"projects/-a/{SESSION}.jsonl", CALL.encode())
    rows = []
    for line in (None, OTHER, RESULT, OTHER):
        if line is not None:
            with path.open("a") as file:
                file.write(line)
        _refresh(home, index)
        with closing(open_read_only(index)) as connection:
            rows += connection.execute("SELECT web_searches, (SELECT COUNT(*) FROM waiting) FROM charges").fetchall()
        assert content(index) == rebuilt_content(home, tmp_path)
    assert rows == [(0, 1), (0, 1), (3, 0), (3, 0)]
