"""Tests of price files. An invalid file is refused with a message that has its name and the place."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.subtests import for_each

from threadline.account import encode_price_file, read_price_source
from threadline.account.prices import PriceFile, read_price_file
from threadline.account.rates import shipped_price_source
from threadline.errors import BadQuery, NotFound, Unreadable

GOOD: dict[str, Any] = {
    "schema": 1,
    "unit": "USD per 1,000,000 tokens",
    "models": {
        "m": {
            "aliases": ["m-20260101"],
            "periods": [
                {
                    "to": "2026-02-01",
                    "input": 1,
                    "output": 2,
                    "cache_write_5m": 3,
                    "cache_write_1h": 4,
                    "cache_read": 5,
                },
                {
                    "from": "2026-02-01",
                    "input": 1,
                    "output": 2,
                    "cache_write_5m": 3,
                    "cache_write_1h": 4,
                    "cache_read": 5,
                    "long_context": {
                        "over_prompt_tokens": 10,
                        "input": 1,
                        "output": 2,
                        "cache_write_5m": 3,
                        "cache_write_1h": 4,
                        "cache_read": 5,
                    },
                },
            ],
            "fast": [{"multiplier": 2}],
        },
        "n": {
            "periods": [{"input": 1, "output": 2, "cache_write_5m": 3, "cache_write_1h": 4, "cache_read": 5}],
        },
    },
}
FIRST, SECOND = GOOD["models"]["m"]["periods"]


def error_after(change: Callable[[Any], Any]) -> str:
    """Return the error message for a valid file after a change."""
    file = copy.deepcopy(GOOD)
    change(file)
    with pytest.raises(BadQuery) as caught:
        read_price_file(json.dumps(file).encode(), "own.json")
    return str(caught.value)


def set_value(*path: Any, value: Any = None) -> Callable[[Any], Any]:
    """Return a change that sets the value at a path."""

    def change(file: Any) -> None:
        for step in path[:-1]:
            file = file[step]
        file[path[-1]] = value

    return change


def remove(*path: Any) -> Callable[[Any], Any]:
    """Return a change that removes the value at a path."""

    def change(file: Any) -> None:
        for step in path[:-1]:
            file = file[step]
        del file[path[-1]]

    return change


M = ("models", "m")
PERIODS = (*M, "periods")
LONG = (*PERIODS, 1, "long_context")


@for_each(
    "change, place, reason",
    [
        (set_value("schema", value=2), "$.schema", "is 2; this version reads schema 1"),
        (set_value("schema", value=True), "$.schema", "is True"),
        (remove("schema"), "$.schema", "is missing"),
        (set_value("unit", value="USD per token"), "$.unit", "'USD per token'"),
        (remove("models"), "$.models", "is missing"),
        (set_value("models", value=[]), "$.models", "Expected `object`, got `array`"),
        (set_value(*M, value=7), "$.models.m", "Expected `object`, got `int`"),
        (set_value("models", "", value=GOOD["models"]["n"]), "$.models", "without an id"),
        (remove(*PERIODS), "$.models.m", "missing required field `periods`"),
        (set_value(*PERIODS, value=[]), "$.models.m.periods", "is empty"),
        (remove(*PERIODS, 0, "cache_read"), "$.models.m.periods[0]", "missing required field `cache_read`"),
        (set_value(*PERIODS, 0, "cache_raed", value=1), "$.models.m.periods[0]", "unknown field `cache_raed`"),
        (set_value(*PERIODS, 0, "input", value=-1), "$.models.m.periods[0].input", "is -1; a price is 0 or more"),
        (set_value(*PERIODS, 0, "input", value="NaN"), "$.models.m.periods[0].input", "is NaN; a price is 0 or more"),
        (set_value(*PERIODS, 0, "input", value="Infinity"), "$.models.m.periods[0].input", "a price is 0 or more"),
        (set_value(*PERIODS, 0, "input", value=True), "$.models.m.periods[0].input", "Expected `decimal`, got `bool`"),
        (set_value(*PERIODS, 0, "input", value="cheap"), "$.models.m.periods[0].input", "Invalid decimal"),
        (set_value(*PERIODS, 0, "input", value=1e300), "$.models.m.periods[0].input", "none is above 1,000,000"),
        (set_value(*PERIODS, 0, "input", value=1e-31), "$.models.m.periods[0].input", "too many digits"),
        (set_value(*PERIODS, 0, "to", value="2026-02-30"), "$.models.m.periods[0].to", "not a date"),
        (set_value(*PERIODS, 0, "to", value="20260201"), "$.models.m.periods[0].to", "Write it as 2026-03-13"),
        (set_value(*PERIODS, 0, "from", value="2026-02-01"), "$.models.m.periods[0]", "not after its beginning"),
        (set_value(*PERIODS, 0, "to", value="2026-02-02"), "$.models.m.periods[1]", "overlaps"),
        (set_value(*PERIODS, 0, "to"), "$.models.m.periods[1]", "overlaps"),
        (set_value(*PERIODS, value=[SECOND, FIRST]), "$.models.m.periods[1]", "sort them by `from`"),
        (
            set_value(*LONG, "over_prompt_tokens", value=0),
            f"{'$.models.m.periods[1].long_context'}.over",
            "more than 0",
        ),
        (set_value(*LONG, "scope", value="above"), "$.models.m.periods[1].long_context.scope", "Invalid enum value"),
        (set_value(*LONG, "output", value=-0.5), "$.models.m.periods[1].long_context.output", "is -0.5"),
        (set_value(*M, "fast", 0, "multiplier", value=0), "$.models.m.fast[0].multiplier", "more than 0"),
        (set_value(*M, "fast", value=[{"multiplier": 2}, {"multiplier": 3}]), "$.models.m.fast[1]", "overlaps"),
        (set_value(*M, "us_inference_multiplier", value=-1), "$.models.m.us_inference_multiplier", "is -1"),
        (set_value(*M, "aliases", value=["N"]), "$.models.m.aliases[0]", "'N', which names 'n' already"),
        (set_value("models", "M", value=GOOD["models"]["n"]), "$.models.M", "is the same id as 'm'"),
        (set_value("fees", value={"web_search_usd_per_request": -1}), "$.fees.web_search_usd_per_request", "is -1"),
        (set_value("rules", value={"batch": 0}), "$.rules.batch", "is 0; a multiplier"),
    ],
)
def test_mistakes_are_reported_with_their_place(change: Callable[[Any], Any], place: str, reason: str) -> None:
    """Each message begins with the file and the place, and says what is wrong."""
    message = error_after(change)
    assert message.startswith(f"own.json: {place}")
    assert reason in message
    assert message.endswith(".")


def test_alias_of_two_models_is_refused() -> None:
    """An alias names one model."""
    assert "which names 'm' already" in error_after(set_value("models", "n", "aliases", value=["M-20260101"]))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"[]", "not contain a JSON object"),
        (b'"text"', "not contain a JSON object"),
        (b"\xff\xfe", "not valid JSON"),
        (b'{"a\xff": 1}', "not valid JSON"),
        (b'{"a": ' + b"[" * 100_000, "not valid JSON"),
        (
            b"{}",
            "neither `schema` and `models`, as threadline's price files have, nor entries with `input_cost_per_token`",
        ),
        (b'{"a": {"b": 1}}', "neither"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes, reason: str) -> None:
    """A file that is neither kind of price file is refused with its name."""
    path = tmp_path / "own.json"
    path.write_bytes(data)
    with pytest.raises(BadQuery) as caught:
        read_price_source(path)
    assert str(caught.value).startswith(f"{path} is not a price file: ")
    assert reason in str(caught.value)


def test_unreadable_files_are_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing file, a directory, an invalid name and a file that is too large each have a message."""
    with pytest.raises(NotFound, match="not found"):
        read_price_source(tmp_path / "nowhere.json")
    with pytest.raises(Unreadable, match="Cannot read the price file"):
        read_price_source(tmp_path)
    with pytest.raises(Unreadable, match="Cannot read the price file"):
        read_price_source("a\0b")
    monkeypatch.setattr("threadline.account.rates._MAX_FILE_SIZE", 10)
    (tmp_path / "large.json").write_bytes(b" " * 11)
    with pytest.raises(BadQuery, match="larger than 10 bytes"):
        read_price_source(tmp_path / "large.json")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such device here")
def test_endless_device_is_refused() -> None:
    """A price file is a regular file: an endless device, or a pipe that nobody writes to, is not read."""
    with pytest.raises(Unreadable, match="not a regular file"):
        read_price_source(os.devnull.replace("null", "zero"))


def test_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    """Some editors write one."""
    path = tmp_path / "own.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode())
    assert list(read_price_source(path).prices.models) == ["m", "n"]


def test_prices_may_be_numbers_or_text() -> None:
    """A price is exact whether it is a JSON number or text, as `--json` prints it."""
    file = copy.deepcopy(GOOD)
    file["models"]["n"]["periods"][0] |= {"input": 0.1, "output": "0.30", "cache_read": 1e-7}
    (period,) = read_price_file(json.dumps(file).encode(), "own.json").models["n"].periods
    assert (period.input, period.output, period.cache_read) == (Decimal("0.1"), Decimal("0.3"), Decimal("1E-7"))


def test_encoded_file_round_trips() -> None:
    """A file in our schema is read back equal, and no number has an exponent."""
    for file in (shipped_price_source().prices, read_price_file(json.dumps(GOOD).encode(), "own.json")):
        data = encode_price_file(file, "a test")
        decoded = read_price_file(data, "again")
        assert decoded.models == file.models
        assert b"E+" not in data
        assert b"E-" not in data


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: json.dumps({"schema": 1, "x": text}).encode()))
def test_any_bytes_are_a_price_file_or_an_error(data: bytes) -> None:
    """No input raises another exception."""
    try:
        result: PriceFile | BadQuery = read_price_file(data, "any")
    except BadQuery as error:
        result = error
    assert isinstance(result, PriceFile) or str(result).startswith("any")
