"""The rule on sightings alone: what is one call, which sighting counts, and who owns it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def _calls(*seen: Sighting) -> list[ApiCall]:
    return resolve_calls({seen[0].key: list(seen)})[seen[0].key]


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
def test_ids_of_sixteen_random_characters_are_random(key: str) -> None:
    """Ids as the API and most gateways make them hold everywhere."""
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
def test_times_counters_and_constants_are_not_random(key: str) -> None:
    """Ids that two agents may well share hold within one agent of one session."""
    assert not is_unique_id(key)


@given(st.text(max_size=60))
def test_any_text_may_be_an_id(key: str) -> None:
    """Whatever an id is made of, it is random or it is not."""
    assert is_unique_id(key) in {True, False}


def test_what_was_sent_makes_one_call() -> None:
    """Rows that agree on input, cache writes and cache reads are one call; the greatest output counts."""
    less, more = _sighting("u1", output=3), _sighting("u2", output=9, origin=_origin("s2"))
    (call,) = _calls(less, more)
    assert call.counted is more


def test_what_was_sent_parts_calls() -> None:
    """Without a uuid in common, other counts are another call: each of the three may differ."""
    seen = [_sighting(f"u{at}", sent) for at, sent in enumerate([(10, 1, 2), (11, 1, 2), (10, 3, 2), (10, 1, 4)])]
    assert len(_calls(*seen)) == 4


def test_a_shared_uuid_makes_one_call() -> None:
    """A row that was written again is the same row, whatever it says, and joins all that it stands with."""
    assert len(_calls(_sighting("u1", (1, 0, 0)), _sighting("u1,u2", (2, 0, 0)), _sighting("u2", (3, 0, 0)))) == 1


def test_rows_without_a_uuid_share_none() -> None:
    """Nothing is not a uuid in common."""
    assert len(_calls(_sighting("", (1, 0, 0)), _sighting("", (2, 0, 0)))) == 2


def test_zeros_belong_to_the_call_that_there_is() -> None:
    """Rows of zeros are no call of their own beside one that is full, whatever the order."""
    empty, full = _sighting("u1", (0, 0, 0), 0), _sighting("u2", output=0)
    for seen in ((empty, full), (full, empty)):
        (call,) = _calls(*seen)
        assert call.counted is full


def test_zeros_alone_are_one_call() -> None:
    """Several rows of zeros under one id are one call of nothing."""
    assert len(_calls(_sighting("u1", (0, 0, 0), 0), _sighting("u2", (0, 0, 0), 0))) == 1


def test_zeros_do_not_tie_two_calls_together() -> None:
    """Zeros beside two calls go to the earlier one, and the two stay two."""
    early = _sighting("u2", (1, 0, 0), time="2026-01-05T09:00:01.000Z")
    late = _sighting("u3", (2, 0, 0), time="2026-01-05T09:00:02.000Z")
    empty = _sighting("u1", (0, 0, 0), 0)
    found = _calls(empty, late, early)
    assert sorted(len(call.sightings) for call in found) == [1, 2]
    assert next(call for call in found if len(call.sightings) == 2).counted is early


def test_copied_zeros_do_not_tie_a_gateways_calls_together() -> None:
    """A copied session has its zeros, too: they follow one of the two calls, and never join both."""
    one, other = _origin("s1"), _origin("s2", began="2026-01-05T10:00:00.000Z")
    later, earlier = "2026-01-05T09:30:00.000Z", "2026-01-05T09:10:00.000Z"
    seen = [
        _sighting("z", (0, 0, 0), 0, LOW, origin=one),
        _sighting("a", (1, 0, 0), 5, LOW, origin=one, time=earlier),
        _sighting("b", (2, 0, 0), 6, LOW, origin=one, time=later),
        _sighting("z", (0, 0, 0), 0, LOW, origin=other),
        _sighting("b", (2, 0, 0), 6, LOW, origin=other, time=earlier),
        _sighting("a", (1, 0, 0), 5, LOW, origin=other, time=later),
    ]
    assert sorted(call.counted.output for call in _calls(*seen)) == [5, 6]


def test_low_entropy_ids_hold_within_one_agent_of_one_session() -> None:
    """Another session, or another agent, is another call; the same agent in another file is not."""
    places = [
        _origin("s1"),
        _origin("s2"),
        _origin("s1", "a1"),
        _origin("s1", "a2"),
        _origin("s1", "a2", transcript="/x"),
    ]
    seen = [_sighting(f"u{at}", key=LOW, origin=place) for at, place in enumerate(places)]
    assert sorted(len(call.sightings) for call in _calls(*seen)) == [1, 1, 1, 2]


def test_a_uuid_proves_what_a_low_entropy_id_cannot() -> None:
    """A copy of a gateway's row under another session is the same call."""
    assert len(_calls(_sighting(key=LOW), _sighting(key=LOW, origin=_origin("s2")))) == 1


def test_repeated_counts_only_alone() -> None:
    """What a parent repeats of an agent counts where nothing else has the id; else never, even if it says more."""
    told = _sighting("p1", (7, 7, 7), 900, is_repeat=True)
    (alone,) = _calls(told, _sighting("p2", (7, 7, 7), 800, is_repeat=True))
    assert alone.counted is told
    own = _sighting("u1")
    (call,) = _calls(told, own)
    assert (call.counted, call.owner, len(call.sightings)) == (own, own, 2)


def test_repeated_goes_to_the_call_that_it_repeats() -> None:
    """Of two calls under an id, the repeated one is set aside beside the one that was sent the same."""
    one, other = _sighting("u1", (1, 0, 0)), _sighting("u2", (2, 0, 0))
    found = _calls(one, other, _sighting("p1", (2, 0, 0), 1, is_repeat=True))
    assert {len(call.sightings): call.counted for call in found} == {1: one, 2: other}


@given(st.data(), st.sampled_from([RANDOM, LOW]))
def test_repeated_goes_where_it_agrees_best(data: st.DataObject, key: str) -> None:
    """As if it were held against every row there is: of those known by scope or uuid, the same sent, the earliest."""
    seen = [
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
    own = [one for one in seen if not one.is_repeat]
    parts = [list(call.sightings) for call in resolve_calls({key: own})[key]] if own else []
    left = [one for one in seen if one.is_repeat and not _laid_by_hand(one, parts, key)]
    if left:
        parts += [list(call.sightings) for call in resolve_calls({key: left})[key]]
    assert [[id(sighting) for sighting in call.sightings] for call in _calls(*seen)] == [
        [id(one) for one in p] for p in parts
    ]


def _laid_by_hand(repeated: Sighting, parts: list[list[Sighting]], key: str) -> bool:
    def near(sighting: Sighting) -> bool:
        same_scope = is_unique_id(key) or sighting.origin.session == repeated.origin.session
        return same_scope or not {*sighting.uuids}.isdisjoint(filter(None, repeated.uuids))

    found = [(part, one) for part in parts for one in part if near(one)]
    if not found:
        return False
    best, _ = min(
        found,
        key=lambda pair: (pair[1].sent != repeated.sent, pair[1].is_repeat, pair[1].time, pair[1].origin.transcript),
    )
    best.append(repeated)
    return True


def test_a_thousand_rows_and_their_repetitions_are_not_held_against_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An id that a hostile file has on every row takes steps that grow with the rows."""
    looked: list[Sighting] = []

    def counted(sighting: Sighting) -> tuple[object, ...]:
        looked.append(sighting)
        return precedence(sighting)

    precedence = dedupe._precedence
    monkeypatch.setattr(dedupe, "_precedence", counted)
    own = [_sighting(f"u{at}", (at + 1, 0, 0)) for at in range(1000)]
    again = [_sighting(f"p{at}", (at + 1, 0, 0), is_repeat=True) for at in range(1000)]
    assert [len(call.sightings) for call in _calls(*own, *again)] == [2] * 1000
    assert len(looked) < 20_000


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
def test_which_sighting_counts(better: dict[str, Any], worse: dict[str, Any]) -> None:
    """The greatest output; then what was sent, a reason for the end, the main thread, and what says more."""
    best, other = _sighting(**better), _sighting(**worse)
    for seen in ((best, other), (other, best)):
        (call,) = _calls(*seen)
        assert call.counted is best


@pytest.mark.parametrize(
    ("original", "copy"),
    [
        ({}, {"origin": _origin("s2", forked=True, began="2026-01-01T00:00:00.000Z")}),
        ({}, {"origin": _origin("s1", "acompact-1", side=True, began="2026-01-01T00:00:00.000Z")}),
        ({}, {"origin": _origin("s2", began="2026-01-05T09:00:00.001Z"), "time": "2025-01-01T00:00:00.000Z"}),
        ({}, {"origin": _origin("s2"), "time": "2026-01-05T09:00:00.001Z"}),
        ({"origin": _origin("s1", "acompact-1", side=True)}, {"origin": _origin("s2", forked=True)}),
    ],
)
def test_who_owns_a_call(original: dict[str, Any], copy: dict[str, Any]) -> None:
    """No fork, no side agent, the file that began first, the earliest row: in this order, whichever counts."""
    owner, other = _sighting(**original), _sighting(output=99, **copy)
    for seen in ((owner, other), (other, owner)):
        (call,) = _calls(*seen)
        assert call.owner is owner
        assert call.counted is other


def test_of_equal_copies_the_original_counts() -> None:
    """The receipt names the line of the original where a copy tells no more."""
    original, copy = _sighting(), _sighting(origin=_origin("s2", began="2026-02-01T00:00:00.000Z"))
    (call,) = _calls(copy, original)
    assert (call.counted, call.owner) == (original, original)
