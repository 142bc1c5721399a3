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
PRICE_KEYS = ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read")


def write_litellm_prices(tmp_path: Path, **more: Any) -> Path:
    """A LiteLLM price file with a known error and a model of another provider."""
    haiku = {"input_cost_per_token": 2.5e-07, "output_cost_per_token": 1.25e-06, "litellm_provider": "anthropic"}
    glm = {"input_cost_per_token": 6e-07, "output_cost_per_token": 2.2e-06, "litellm_provider": "zai"}
    wrong = {"cache_creation_input_token_cost_above_1hr": 6e-06}
    path = tmp_path / "litellm.json"
    path.write_text(json.dumps({"claude-3-haiku-20240307": haiku | wrong, "zai/glm-5.1": glm, **more}))
    return path


def write_prices(tmp_path: Path, model: str, **more: Any) -> Path:
    """A price file in our schema with one model."""
    path = tmp_path / "own.json"
    path.write_text(
        json.dumps({"schema": 1, "models": {model: {"periods": [dict.fromkeys(PRICE_KEYS, 0.125)], **more}}})
    )
    return path


@pytest.mark.parametrize("width", ["80", "120", "200"])
def test_table_fits_terminal(cli: CliRunner, monkeypatch: pytest.MonkeyPatch, width: str) -> None:
    """Every model, its prices and the digest are shown at any width. A wide table has the source, too."""
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


def test_long_context_prices_have_their_own_row(cli: CliRunner) -> None:
    """The prices above a threshold are below the model, with the threshold."""
    lines = cli("prices", "--model", "haiku-5-5").out.splitlines()
    assert lines[1].split()[:6] == ["claude-haiku-5-5", "0.1", "0.5", "0.125", "0.2", "0.01"]
    assert lines[2].split()[:8] == ["prompt", ">", "100,000", "0.5", "2.5", "0.625", "1", "0.05"]


def test_machine_formats_are_exact(cli: CliRunner) -> None:
    """JSON, JSON Lines and CSV have the same rows. Prices are numbers without exponent, equal to the rates."""
    document = cli("prices", "--json").json
    assert set(document) == {"rows", "digest", "files", "web_search_fee", "notes"}
    assert document["files"] == [{"name": "threadline", "digest": document["digest"]}]
    assert (document["digest"], document["web_search_fee"], document["notes"]) == (
        shipped_rates().digest,
        Decimal("0.01"),
        [],
    )
    rows = cli("prices", "--jsonl").jsonl
    assert rows == document["rows"]
    assert all(set(row) == KEYS for row in rows)
    for printed, rate in zip(rows, shipped_rates().rows(), strict=True):
        assert [printed[word] for word in PRICE_KEYS] == [getattr(rate, word) for word in PRICE_KEYS]
        assert not any("E" in str(printed[word]) for word in PRICE_KEYS)
    cells = cli("prices", "--csv").csv
    assert [[cell[word] for word in PRICE_KEYS] for cell in cells] == [
        [str(row[word]) for word in PRICE_KEYS] for row in rows
    ]


def test_finds_model_by_any_of_its_names(cli: CliRunner) -> None:
    """`--model` accepts part of an id or alias, or an id in another spelling, and adds the notes."""
    for text in ("opus-4-6", "OPUS-4-6", "claude-opus-4-6-20260205", "us.anthropic.claude-opus-4-6-v1"):
        assert {row["model"] for row in cli("prices", "--model", text, "--jsonl").jsonl} == {"claude-opus-4-6"}
    assert "Long-context premium dropped when 1M became" in cli("prices", "--model", "opus-4-6").out


def test_on_selects_the_prices_of_a_day(cli: CliRunner) -> None:
    """`--on` keeps the periods and fast modes that applied on that day."""
    before = cli("prices", "--model", "sonnet-5-5", "--on", "2026-10-07", "--jsonl").jsonl
    after = cli("prices", "--model", "sonnet-5-5", "--on", "2026-10-08", "--jsonl").jsonl
    assert [[row["cache_read"] for row in rows] for rows in (before, after)] == [[Decimal("0.2")], [Decimal("0.1")]]
    (early,) = cli("prices", "--model", "opus-4-7", "--on", "2026-05-13", "--jsonl").jsonl
    (late,) = cli("prices", "--model", "opus-4-7", "--on", "2026-05-14", "--jsonl").jsonl
    assert (early["fast"], [mode["multiplier"] for mode in late["fast"]]) == ([], [6])


def test_unknown_model_lists_the_models(cli: CliRunner) -> None:
    """Exit code 1, and a sentence that lists the models."""
    result = cli("prices", "--model", "glm")
    assert (result.code, result.out) == (1, "")
    assert "matches --model 'glm'. Models: claude-3-opus, " in result.err
    assert cli("prices", "--model", "glm", "--json").json["rows"] == []


def test_prices_option_adds_models(cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--prices` adds a file's models. The files are named, and the digest changes."""
    monkeypatch.setenv("COLUMNS", "500")  # paths may be long
    path = write_prices(tmp_path, "glm-5.1", source="my contract")
    result = cli("prices", "--prices", path, "--model", "glm")
    assert result.code == 0
    assert "my contract" in result.out
    assert "  own.json" in result.out.replace(str(tmp_path) + "/", "  ")
    assert result.out.splitlines()[-1] == f"  digest {load_rates(path).digest}" != f"  digest {shipped_rates().digest}"
    (row,) = cli("prices", "--prices", path, "--model", "zai/glm-5.1", "--jsonl").jsonl
    assert (row["input"], row["file"]) == (Decimal("0.125"), str(path))


def test_invalid_price_file_is_an_error(cli: CliRunner, tmp_path: Path) -> None:
    """An invalid or missing file exits with 2, and the message says what is wrong and where."""
    path = tmp_path / "bad.json"
    path.write_text('{"schema": 1, "models": {"m": {"periods": [{"input": 1}]}}}')
    result = cli("prices", "--prices", path)
    assert (result.code, result.out) == (2, "")
    assert f"{path}: $.models.m.periods[0] is invalid: Object missing required field" in result.err
    missing = cli("prices", "--prices", tmp_path / "none.json")
    assert (missing.code, missing.out) == (2, "")
    assert "not found" in missing.err


def test_import_prints_a_price_file(cli: CliRunner, tmp_path: Path) -> None:
    """`--import` prints a file in our schema and reports corrections. `--prices` accepts either file."""
    source = write_litellm_prices(tmp_path)
    result = cli("prices", "--import", source)
    assert result.code == 0
    assert result.json["schema"] == 1
    assert list(result.json["models"]) == ["claude-3-haiku", "glm-5-1"]
    assert "claude-3-haiku: the 1-hour cache write of 6 was corrected to 0.5, twice input." in result.err
    imported = tmp_path / "made.json"
    imported.write_bytes(result.raw)
    for model in ("claude-3-haiku", "zai/glm-5.1"):
        assert load_rates(imported).rate(model, "2026-11-01", 1) == load_rates(source).rate(model, "2026-11-01", 1)


def test_import_overwrites_only_with_force(cli: CliRunner, tmp_path: Path) -> None:
    """`--out` writes a new file. An existing one is kept unless `--force` is given."""
    source, target = write_litellm_prices(tmp_path), tmp_path / "made.json"
    result = cli("prices", "--import", source, "--out", target)
    assert result.code == 0
    assert result.out == f"Wrote prices of 2 models to {target}. To use them: --prices {target}\n"
    target.write_text("mine")
    refused = cli("prices", "--import", source, "--out", target)
    assert (refused.code, refused.out, target.read_text()) == (2, "", "mine")
    assert "--force" in refused.err
    assert cli("prices", "--import", source, "--out", target, "--force").code == 0
    assert load_rates(target).rate("glm-5.1", "2026-11-01", 1) is not None
    missing_folder = cli("prices", "--import", source, "--out", tmp_path / "no/where.json")
    assert (missing_folder.code, missing_folder.out) == (2, "")


@pytest.mark.parametrize(
    "options",
    [["--out", "x"], ["--force"], ["--import", "x", "--model", "y"], ["--import", "x", "--csv"], ["--on", "someday"]],
)
def test_contradicting_options_are_an_error(cli: CliRunner, options: list[str]) -> None:
    """Exit code 2 and a sentence. Nothing is read or written."""
    result = cli("prices", *options)
    assert (result.code, result.out) == (2, "")
    assert "Traceback" not in result.err


def test_escapes_hostile_price_file(cli: CliRunner, tmp_path: Path) -> None:
    """Hostile names and notes are escaped, in the table and in messages."""
    hostile = "\x1b[2Jm\u202e\n"
    path = write_prices(tmp_path, hostile, note=hostile, source=hostile, aliases=["x\x07"])
    for options in (["--model", "m"], [], ["--model", "m", "--json"]):
        result = cli("prices", "--prices", path, *options)
        assert result.code == 0
        assert not control_characters(result.out)
    path.write_text(json.dumps({"schema": 1, "models": {hostile: 1}}))
    refused = cli("prices", "--prices", path)
    assert refused.code == 2
    assert not control_characters(refused.err)
    entries = {
        hostile: {"input_cost_per_token": -1, "output_cost_per_token": 1},
        f"\U0001f600{hostile}": {"input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06},
    }
    imported = cli("prices", "--import", write_litellm_prices(tmp_path, **entries))
    assert f"\U0001f600{hostile}" in imported.json["models"]
    assert not control_characters(imported.out + imported.err)


def test_needs_no_home(cli: CliRunner) -> None:
    """The command reads no home, and says so when one is given."""
    assert cli("prices").code == 0
    assert "--home does not apply to `threadline prices`" in cli("--home", "x", "prices").err
