"""The figures that two other programs have found in the corpus of real transcripts."""

from __future__ import annotations

from decimal import Decimal

import pytest
from tests.cli.runner import CliRunner
from tests.real.client import SHARED

from threadline.account import KEY_DESCRIPTIONS, SESSION_KEY_DESCRIPTIONS

HOME = SHARED / "corpus/home"
EXPECTED = {
    "charges": 5277,
    "input": 123_734,
    "output": 1_533_111,
    "cache_write": 24_585_905,
    "cache_write_1h": 14_895_417,
    "cache_read": 730_352_886,
}
NESTS = ("project,model", "month,day,hour", "session,thread,tool", "version,branch,skill", "week,agent-type,agent")

pytestmark = [pytest.mark.real, pytest.mark.skipif(not HOME.is_dir(), reason="../shared/corpus is not there")]


@pytest.mark.parametrize("by", [*KEY_DESCRIPTIONS, *SESSION_KEY_DESCRIPTIONS, *NESTS])
@pytest.mark.parametrize("zone", ["UTC", "Australia/Lord_Howe"])
def test_every_report_has_the_known_total(capfdbinary: pytest.CaptureFixture[bytes], by: str, zone: str) -> None:
    """5,277 charges and their tokens, for every grouping and time zone. Rows add up to them."""
    answer = CliRunner(capfdbinary)("usage", "--home", HOME, "--by", by, "--tz", zone, "--json")
    report = answer.json
    assert (answer.code, answer.err) == (0, "")
    assert {name: report["total"][name] for name in EXPECTED} == EXPECTED
    assert {name: sum(row[name] for row in report["rows"]) for name in EXPECTED} == EXPECTED
    amounts = [Decimal(row["amount"]) for row in report["rows"] if row["amount"] is not None]
    assert sum(amounts) == Decimal(report["total"]["amount"])


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("by", ["day", "session", "project,model"])
def test_real_names_fit_the_width(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, by: str, width: int
) -> None:
    """Real paths, titles and models are not wider than the terminal."""
    monkeypatch.setenv("COLUMNS", str(width))
    answer = CliRunner(capfdbinary)("usage", "--home", HOME, "--by", by)
    assert (answer.code, answer.err) == (0, "")
    assert max(map(len, answer.out.splitlines())) <= width
