"""`threadline prices`."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.cli.runner import CliRunner, control_characters

from threadline.account import load_rates, shipped_rates

KEYS = {
    "model",
    "begins",
    "ends",
    "long_context",
    "input",
    "output",
    "cache_write_5m",
    "cache_write_1h",
    "cache_read",
    "fast",
    "us",
    "regional",
    "aliases",
    "introduced",
    "source",
    "confidence",
    "note",
    "file",
}
FIVE = ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read")


def litellm(tmp_path: Path, **more: Any) -> Path:
    """A price file of LiteLLM's, with a known error and a model of another maker."""
    haiku = {"input_cost_per_token": 2.5e-07, "output_cost_per_token": 1.25e-06, "litellm_provider": "anthropic"}
    glm = {"input_cost_per_token": 6e-07, "output_cost_per_token": 2.2e-06, "litellm_provider": "zai"}
    wrong = {"cache_creation_input_token_cost_above_1hr": 6e-06}
    path = tmp_path / "litellm.json"
    path.write_text(json.dumps({"claude-3-haiku-20240307": haiku | wrong, "zai/glm-5.1": glm, **more}))
    return path


def own(tmp_path: Path, model: str, **more: Any) -> Path:
    """A price file of ours with one model."""
    path = tmp_path / "own.json"
    path.write_text(json.dumps({"schema": 1, "models": {model: {"periods": [dict.fromkeys(FIVE, 0.125)], **more}}}))
    return path


@pytest.mark.parametrize("width", ["80", "120", "200"])
def test_the_table_fits(cli: CliRunner, monkeypatch: pytest.MonkeyPatch, width: str) -> None:
    """Every model, its prices and the digest are on the page, however narrow; a wide one says the source as well."""
    monkeypatch.setenv("COLUMNS", width)
    result = cli("prices")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert max(map(len, lines)) <= int(width)
    for row in shipped_rates().rows():
        assert any(line.startswith(f"  {row.model} ") for line in lines)
    assert lines[-1] == f"  digest {shipped_rates().digest}"
    assert ("official+litellm, high" in result.out) == (width != "80")
    assert ("until 2026-07-24" in result.out) == (width == "200")


def test_the_long_prompt_has_a_row_of_its_own(cli: CliRunner) -> None:
    """The prices above a threshold stand below the model, and say the threshold."""
    lines = cli("prices", "--model", "haiku-5-5").out.splitlines()
    assert lines[1].split()[:6] == ["claude-haiku-5-5", "0.1", "0.5", "0.125", "0.2", "0.01"]
    assert lines[2].split()[:8] == ["prompt", ">", "100,000", "0.5", "2.5", "0.625", "1", "0.05"]


def test_rows_for_programs_are_exact(cli: CliRunner) -> None:
    """JSON, JSON Lines and CSV have the same rows; prices are text without exponent, equal to the table's."""
    whole = cli("prices", "--json").json
    assert set(whole) == {"rows", "digest", "files", "web_search_fee", "notes"}
    assert whole["files"] == [{"name": "threadline", "digest": whole["digest"]}]
    assert (whole["digest"], whole["web_search_fee"], whole["notes"]) == (shipped_rates().digest, "0.01", [])
    rows = cli("prices", "--jsonl").jsonl
    assert rows == whole["rows"]
    assert all(set(row) == KEYS for row in rows)
    for told, row in zip(rows, shipped_rates().rows(), strict=True):
        assert [Decimal(told[word]) for word in FIVE] == [getattr(row, word) for word in FIVE]
        assert not any("E" in told[word] for word in FIVE)
    cells = cli("prices", "--csv").csv
    assert [[cell[word] for word in FIVE] for cell in cells] == [[row[word] for word in FIVE] for row in rows]


def test_a_model_is_found_by_any_of_its_names(cli: CliRunner) -> None:
    """`--model` takes a part of an id or alias, or a whole id in another spelling, and adds the notes."""
    for text in ("opus-4-6", "OPUS-4-6", "claude-opus-4-6-20260205", "us.anthropic.claude-opus-4-6-v1"):
        assert {row["model"] for row in cli("prices", "--model", text, "--jsonl").jsonl} == {"claude-opus-4-6"}
    assert "Long-context premium dropped when 1M became" in cli("prices", "--model", "opus-4-6").out


def test_a_day_has_its_prices(cli: CliRunner) -> None:
    """`--on` leaves what holds that day: the period, and fast mode where there was one."""
    before = cli("prices", "--model", "sonnet-5-5", "--on", "2026-10-07", "--jsonl").jsonl
    after = cli("prices", "--model", "sonnet-5-5", "--on", "2026-10-08", "--jsonl").jsonl
    assert [[row["cache_read"] for row in rows] for rows in (before, after)] == [["0.2"], ["0.1"]]
    (early,) = cli("prices", "--model", "opus-4-7", "--on", "2026-05-13", "--jsonl").jsonl
    (late,) = cli("prices", "--model", "opus-4-7", "--on", "2026-05-14", "--jsonl").jsonl
    assert (early["fast"], [one["multiplier"] for one in late["fast"]]) == ([], ["6"])


def test_nothing_fits(cli: CliRunner) -> None:
    """No such model: exit code 1, and a sentence that says which there are."""
    result = cli("prices", "--model", "glm")
    assert (result.code, result.out) == (1, "")
    assert "matches --model 'glm'. Models: claude-3-opus, " in result.err
    assert cli("prices", "--model", "glm", "--json").json["rows"] == []


def test_a_file_is_laid_over(cli: CliRunner, tmp_path: Path) -> None:
    """`--prices` adds a file's models; the page names the files, and the digest is another."""
    path = own(tmp_path, "glm-5.1", source="my contract")
    result = cli("prices", "--prices", path, "--model", "glm")
    assert result.code == 0
    assert "my contract" in result.out
    assert "  own.json" in result.out.replace(str(tmp_path) + "/", "  ")
    assert result.out.splitlines()[-1] == f"  digest {load_rates(path).digest}" != f"  digest {shipped_rates().digest}"
    (row,) = cli("prices", "--prices", path, "--model", "zai/glm-5.1", "--jsonl").jsonl
    assert (row["input"], row["file"]) == ("0.125", str(path))


def test_a_bad_file_is_a_sentence(cli: CliRunner, tmp_path: Path) -> None:
    """A price file with a mistake, or none at all: exit code 2, nothing printed, and what is wrong where."""
    path = tmp_path / "bad.json"
    path.write_text('{"schema": 1, "models": {"m": {"periods": [{"input": 1}]}}}')
    result = cli("prices", "--prices", path)
    assert (result.code, result.out) == (2, "")
    assert f"{path}: $.models.m.periods[0] is invalid: Object missing required field" in result.err
    missing = cli("prices", "--prices", tmp_path / "none.json")
    assert (missing.code, missing.out) == (2, "")
    assert "not found" in missing.err


def test_an_import_is_a_price_file(cli: CliRunner, tmp_path: Path) -> None:
    """`--import` prints a file of our schema and says what was corrected; `--prices` takes either, alike."""
    source = litellm(tmp_path)
    result = cli("prices", "--import", source)
    assert result.code == 0
    assert result.json["schema"] == 1
    assert list(result.json["models"]) == ["claude-3-haiku", "glm-5-1"]
    assert "claude-3-haiku: the 1-hour cache write of 6 was corrected to 0.5, twice input." in result.err
    made = tmp_path / "made.json"
    made.write_bytes(result.raw)
    for model in ("claude-3-haiku", "zai/glm-5.1"):
        assert load_rates(made).rate(model, "2026-11-01", 1) == load_rates(source).rate(model, "2026-11-01", 1)


def test_an_import_replaces_nothing_unasked(cli: CliRunner, tmp_path: Path) -> None:
    """`--out` writes a new file; one that is there stays as it is unless `--force` is given."""
    source, target = litellm(tmp_path), tmp_path / "made.json"
    told = cli("prices", "--import", source, "--out", target)
    assert told.code == 0
    assert told.out == f"Wrote prices of 2 models to {target}. To use them: --prices {target}\n"
    target.write_text("mine")
    refused = cli("prices", "--import", source, "--out", target)
    assert (refused.code, refused.out, target.read_text()) == (2, "", "mine")
    assert "--force" in refused.err
    assert cli("prices", "--import", source, "--out", target, "--force").code == 0
    assert load_rates(target).rate("glm-5.1", "2026-11-01", 1) is not None
    nowhere = cli("prices", "--import", source, "--out", tmp_path / "no/where.json")
    assert (nowhere.code, nowhere.out) == (2, "")


@pytest.mark.parametrize(
    "words",
    [["--out", "x"], ["--force"], ["--import", "x", "--model", "y"], ["--import", "x", "--csv"], ["--on", "someday"]],
)
def test_options_that_do_not_go_together(cli: CliRunner, words: list[str]) -> None:
    """Options that mean nothing together, or at all: exit code 2 and a sentence, and nothing is read or written."""
    result = cli("prices", *words)
    assert (result.code, result.out) == (2, "")
    assert "Traceback" not in result.err


def test_a_hostile_file_does_not_steer_the_terminal(cli: CliRunner, tmp_path: Path) -> None:
    """Names and notes of a file that hold escape sequences are shown harmless, in the page and in sentences."""
    evil = "\x1b[2Jm\u202e\n"
    path = own(tmp_path, evil, note=evil, source=evil, aliases=["x\x07"])
    for words in (["--model", "m"], [], ["--model", "m", "--json"]):
        result = cli("prices", "--prices", path, *words)
        assert result.code == 0
        assert not control_characters(result.out)
    path.write_text(json.dumps({"schema": 1, "models": {evil: 1}}))
    refused = cli("prices", "--prices", path)
    assert refused.code == 2
    assert not control_characters(refused.err)
    entries = {
        evil: {"input_cost_per_token": -1, "output_cost_per_token": 1},
        f"\U0001f600{evil}": {"input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06},
    }
    told = cli("prices", "--import", litellm(tmp_path, **entries))
    assert f"\U0001f600{evil}" in told.json["models"]
    assert not control_characters(told.out + told.err)


def test_no_home_is_needed(cli: CliRunner) -> None:
    """The command reads no home, and says so when one is given."""
    assert cli("prices").code == 0
    assert "has no option --home" in cli("--home", "x", "prices").err
