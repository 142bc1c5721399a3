"""Tests of deduplication: which sightings are one call, which one counts, and who owns it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from threadline.account import dedupe
from threadline.account.dedupe import ApiCall, is_unique_id, resolve_calls
from threadline.model.usage import Origin, Sighting, UsagePass

RANDOM = "msg_01XFDUDYJgAACzvnptvVoYEL"
LOW = "msg_1"


def _origin(session: str = "s1", agent: str | None = None, **fields: Any) -> Origin:
    began = fields.pop("began", "2026-01-05T09:00:00.000Z")
    transcript = fields.pop("transcript", f"/{session}/{agent or 'main'}.jsonl")
    return Origin(session, agent, transcript=transcript, began=began, is_agent=agent is not None, **fields)


def _sighting(
    uuids: str = "u1", sent: tuple[int, int, int] = (10, 0, 0), output: int = 5, key: str = RANDOM, **fields: Any
) -> Sighting:
    origin = fields.pop("origin", None) or _origin()
    rows = " ".join(f"{at * 100} {uuid}" for at, uuid in enumerate(uuids.split(",")))
    return Sighting(
        key,
        0,
        fields.pop("model", "claude-opus-5"),
        fields.pop("time", "2026-01-05T09:00:00.000Z"),
        0,
        sent[0],
        output,
        sent[1],
        sent[1],
        0,
        sent[2],
        fields.pop("stopped", True),
        rows,
        origin=origin,
        **fields,
    )


def _calls(*sightings: Sighting) -> list[ApiCall]:
    return resolve_calls({sightings[0].key: list(sightings)})[sightings[0].key]


@pytest.mark.parametrize(
    "key",
    [
        "msg_01XFDUDYJgAACzvnptvVoYEL",
        "msg_bdrk_01XFDUDYJgAACzvnptvVoYEL",
        "msg_vrtx_01XFDUDYJgAACzvnptvVoYEL",
        "3f2a8c1e-9d47-4b6a-8e21-5c0d9f7b3a64",
        "req_011CVabcDEFghiJKLmnoPQRs",
        "chatcmpl-9f8e7d6c5b4a39281706f5e4d3c2b1a0",
        "gen-1730000000-AbCdEfGhIjKlMnOpQrSt",
    ],
)
def test_ids_with_sixteen_random_characters_are_unique(key: str) -> None:
    """Ids of the API and of most gateways are unique everywhere."""
    assert is_unique_id(key)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "msg_1",
        "msg_20251030084941",
        "msg_20251030084941123",
        "msg_20251030084941_1",
        "msg_0000000000000000000001",
        "chatcmpl-1",
        "1730000000000000000",
        "message",
        "assistant-message-constant",
        "aaaaaaaaaaaaaaaaaaaaaaa1",
    ],
)
def test_times_counters_and_constants_are_not_unique(key: str) -> None:
    """Two agents may share such an id, so it is valid within one agent of one session."""
    assert not is_unique_id(key)


@given(st.text(max_size=60))
def test_any_text_may_be_an_id(key: str) -> None:
    """Any text is classified as unique or not, without an error."""
    assert is_unique_id(key) in {True, False}


def test_rows_with_equal_sent_tokens_are_one_call() -> None:
    """Sent tokens are input, cache writes and cache reads. The greatest output counts."""
    less, more = _sighting("u1", output=3), _sighting("u2", output=9, origin=_origin("s2"))
    (call,) = _calls(less, more)
    assert call.counted is more


def test_rows_with_different_sent_tokens_are_separate_calls() -> None:
    """Unless they share a uuid. Each of the three counts may differ."""
    sightings = [_sighting(f"u{at}", sent) for at, sent in enumerate([(10, 1, 2), (11, 1, 2), (10, 3, 2), (10, 1, 4)])]
    assert len(_calls(*sightings)) == 4


def test_rows_with_a_shared_uuid_are_one_call() -> None:
    """A row that was written twice is the same row, whatever its counts, and joins every group it appears in."""
    assert len(_calls(_sighting("u1", (1, 0, 0)), _sighting("u1,u2", (2, 0, 0)), _sighting("u2", (3, 0, 0)))) == 1


def test_rows_without_a_uuid_are_not_joined() -> None:
    """A missing uuid is not a shared uuid."""
    assert len(_calls(_sighting("", (1, 0, 0)), _sighting("", (2, 0, 0)))) == 2


def test_zero_rows_join_the_call() -> None:
    """Rows of zeros are not a separate call beside one with counts, in any order."""
    empty, full = _sighting("u1", (0, 0, 0), 0), _sighting("u2", output=0)
    for sightings in ((empty, full), (full, empty)):
        (call,) = _calls(*sightings)
        assert call.counted is full


def test_only_zero_rows_are_one_call() -> None:
    """Several rows of zeros with one id are one empty call."""
    assert len(_calls(_sighting("u1", (0, 0, 0), 0), _sighting("u2", (0, 0, 0), 0))) == 1


def test_zero_rows_do_not_join_two_calls() -> None:
    """They belong to the earlier call, and the two calls stay separate."""
    early = _sighting("u2", (1, 0, 0), time="2026-01-05T09:00:01.000Z")
    late = _sighting("u3", (2, 0, 0), time="2026-01-05T09:00:02.000Z")
    empty = _sighting("u1", (0, 0, 0), 0)
    calls = _calls(empty, late, early)
    assert sorted(len(call.sightings) for call in calls) == [1, 2]
    assert next(call for call in calls if len(call.sightings) == 2).counted is early


def test_copied_zero_rows_do_not_join_two_gateway_calls() -> None:
    """A copied session contains the zeros, too. They follow one of the two calls and never join both."""
    original, copy = _origin("s1"), _origin("s2", began="2026-01-05T10:00:00.000Z")
    later, earlier = "2026-01-05T09:30:00.000Z", "2026-01-05T09:10:00.000Z"
    sightings = [
        _sighting("z", (0, 0, 0), 0, LOW, origin=original),
        _sighting("a", (1, 0, 0), 5, LOW, origin=original, time=earlier),
        _sighting("b", (2, 0, 0), 6, LOW, origin=original, time=later),
        _sighting("z", (0, 0, 0), 0, LOW, origin=copy),
        _sighting("b", (2, 0, 0), 6, LOW, origin=copy, time=earlier),
        _sighting("a", (1, 0, 0), 5, LOW, origin=copy, time=later),
    ]
    assert sorted(call.counted.output for call in _calls(*sightings)) == [5, 6]


def test_low_entropy_ids_are_valid_within_one_agent() -> None:
    """Another session or another agent is another call. The same agent in another file is not."""
    places = [
        _origin("s1"),
        _origin("s2"),
        _origin("s1", "a1"),
        _origin("s1", "a2"),
        _origin("s1", "a2", transcript="/x"),
    ]
    sightings = [_sighting(f"u{at}", key=LOW, origin=place) for at, place in enumerate(places)]
    assert sorted(len(call.sightings) for call in _calls(*sightings)) == [1, 1, 1, 2]


def test_uuid_identifies_copies_with_low_entropy_ids() -> None:
    """A copy of a gateway's row in another session is the same call."""
    assert len(_calls(_sighting(key=LOW), _sighting(key=LOW, origin=_origin("s2")))) == 1


def test_original_of_a_fork_has_rows_between_the_shared_ones() -> None:
    """A fork's file begins at the same time. The shared rows span more bytes of the original, whoever continued first.

    If they span as many bytes, the original is the one whose own rows begin first.
    """
    forked, continued = "2026-01-05T10:00:00.000Z", "2026-01-05T11:00:00.000Z"
    original, copy = _origin("s1"), _origin("s2")
    keys = [f"{RANDOM}{at}" for at in range(2)]

    def owners(end_in_original: int, own: list[Sighting]) -> set[str]:
        shared = {
            key: [
                structs.replace(_sighting(key=key, origin=origin), rows=f"{at * end} {key}")
                for origin, end in ((copy, 500), (original, end_in_original))
            ]
            for at, key in enumerate(keys)
        }
        return {call.owner.origin.session for calls in resolve_calls(shared, own).values() for call in calls}

    copy_first = [_sighting(origin=copy, time=forked), _sighting(origin=original, time=continued)]
    original_first = [_sighting(origin=copy, time=continued), _sighting(origin=original, time=forked)]
    assert owners(900, copy_first) == {"s1"}
    assert owners(500, original_first) == {"s1"}


def test_repeats_count_only_without_the_agents_own_rows() -> None:
    """A parent's repeat of an agent's message counts only if nothing else has the id, even if it is more complete."""
    repeat = _sighting("p1", (7, 7, 7), 900, is_repeat=True)
    (alone,) = _calls(repeat, _sighting("p2", (7, 7, 7), 800, is_repeat=True))
    assert alone.counted is repeat
    original = _sighting("u1")
    (call,) = _calls(repeat, original)
    assert (call.counted, call.owner, len(call.sightings)) == (original, original, 2)


def test_repeats_join_the_call_with_equal_sent_tokens() -> None:
    """Of two calls with one id, the repeat is set aside in the one with the same sent tokens."""
    first, second = _sighting("u1", (1, 0, 0)), _sighting("u2", (2, 0, 0))
    calls = _calls(first, second, _sighting("p1", (2, 0, 0), 1, is_repeat=True))
    assert {len(call.sightings): call.counted for call in calls} == {1: first, 2: second}


@given(st.data(), st.sampled_from([RANDOM, LOW]))
def test_repeats_join_the_best_match(data: st.DataObject, key: str) -> None:
    """The result equals a comparison with every row.

    The order is: same scope or uuid, then the same sent tokens, then the earliest.
    """
    sightings = [
        _sighting(
            data.draw(st.sampled_from(["", "u1", "u2", "u1,u3", "u2,"])),
            data.draw(st.sampled_from([(1, 0, 0), (2, 0, 0), (0, 0, 0)])),
            key=key,
            origin=_origin(data.draw(st.sampled_from(["s1", "s2", "s3"])), transcript=f"/{at}.jsonl"),
            is_repeat=data.draw(st.booleans()),
            time=f"2026-01-05T09:00:00.{data.draw(st.integers(0, 3))}00Z",
        )
        for at in range(data.draw(st.integers(1, 8)))
    ]
    originals = [sighting for sighting in sightings if not sighting.is_repeat]
    parts = [list(call.sightings) for call in resolve_calls({key: originals})[key]] if originals else []
    unmatched = [
        sighting for sighting in sightings if sighting.is_repeat and not _add_to_best_match(sighting, parts, key)
    ]
    if unmatched:
        parts += [list(call.sightings) for call in resolve_calls({key: unmatched})[key]]
    assert [[id(sighting) for sighting in call.sightings] for call in _calls(*sightings)] == [
        [id(sighting) for sighting in p] for p in parts
    ]


def _add_to_best_match(repeated: Sighting, parts: list[list[Sighting]], key: str) -> bool:
    def near(sighting: Sighting) -> bool:
        same_scope = is_unique_id(key) or sighting.origin.session == repeated.origin.session
        return same_scope or not {*sighting.uuids}.isdisjoint(filter(None, repeated.uuids))

    candidates = [(part, sighting) for part in parts for sighting in part if near(sighting)]
    if not candidates:
        return False
    best, _ = min(
        candidates,
        key=lambda pair: (pair[1].sent != repeated.sent, pair[1].is_repeat, pair[1].time, pair[1].origin.transcript),
    )
    best.append(repeated)
    return True


def test_matching_repeats_is_not_quadratic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If a hostile file uses one id for every row, the number of steps is linear in the rows."""
    compared: list[Sighting] = []

    def counted(sighting: Sighting) -> tuple[object, ...]:
        compared.append(sighting)
        return precedence(sighting)

    precedence = dedupe._precedence
    monkeypatch.setattr(dedupe, "_precedence", counted)
    originals = [_sighting(f"u{at}", (at + 1, 0, 0)) for at in range(1000)]
    repeats = [_sighting(f"p{at}", (at + 1, 0, 0), is_repeat=True) for at in range(1000)]
    assert [len(call.sightings) for call in _calls(*originals, *repeats)] == [2] * 1000
    assert len(compared) < 20_000


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"output": 6, "stopped": False}, {"output": 5}),
        ({"sent": (10, 0, 0), "uuids": "u1"}, {"sent": (9, 0, 0), "uuids": "u1"}),
        ({"sent": (10, 0, 0), "stopped": False}, {"sent": (9, 0, 0)}),
        ({}, {"stopped": False}),
        ({"origin": _origin("s1", "a1")}, {"stopped": False}),
        ({}, {"origin": _origin("s1", "a1")}),
        ({"passes": [UsagePass("advisor_message", "m")]}, {}),
    ],
)
def test_most_complete_sighting_counts(better: dict[str, Any], worse: dict[str, Any]) -> None:
    """The order is: greatest output, sent tokens, a stop reason, the main thread, and more detail."""
    best, worst = _sighting(**better), _sighting(**worse)
    for sightings in ((best, worst), (worst, best)):
        (call,) = _calls(*sightings)
        assert call.counted is best


@pytest.mark.parametrize(
    ("original", "copy"),
    [
        ({}, {"origin": _origin("s2", forked=True, began="2026-01-01T00:00:00.000Z")}),
        ({}, {"origin": _origin("s1", "acompact-1", side=True, began="2026-01-01T00:00:00.000Z")}),
        ({}, {"origin": _origin("s2", began="2026-01-05T09:00:00.001Z"), "time": "2025-01-01T00:00:00.000Z"}),
        ({}, {"origin": _origin("s2"), "time": "2026-01-05T09:00:00.001Z"}),
        ({}, {"origin": _origin("s1", "a1")}),
        ({"origin": _origin("s1", "acompact-1", side=True)}, {"origin": _origin("s2", forked=True)}),
    ],
)
def test_earliest_original_owns_the_call(original: dict[str, Any], copy: dict[str, Any]) -> None:
    """The order is: no fork, no side agent, the file that began first, the earliest row, the main thread.

    It does not matter which counts.
    """
    owner, copied = _sighting(**original), _sighting(output=99, **copy)
    for sightings in ((owner, copied), (copied, owner)):
        (call,) = _calls(*sightings)
        assert call.owner is owner
        assert call.counted is copied


def test_original_counts_among_equal_copies() -> None:
    """The receipt names the line of the original unless a copy is more complete."""
    original, copy = _sighting(), _sighting(origin=_origin("s2", began="2026-02-01T00:00:00.000Z"))
    (call,) = _calls(copy, original)
    assert (call.counted, call.owner) == (original, original)
