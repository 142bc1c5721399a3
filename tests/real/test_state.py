"""The state at any place, and what the model saw, compared with real transcripts and real clients."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.real.client import API, SHARED, newest, play, start_client
from tests.thread.read_checks import Explanation, check_reads

import threadline
from threadline.find import homes, look
from threadline.model.homes import TranscriptKind
from threadline.model.state import ProofLevel
from threadline.thread import Requests, difference, state_at

HOME = SHARED / "corpus/home"
NEWEST = newest() if API.exists() else None

pytestmark = pytest.mark.real
needs_corpus = pytest.mark.skipif(not HOME.is_dir(), reason="../shared/corpus is not there")


def mains(home: Path) -> list[Path]:
    """The main transcripts of a home."""
    (listed_home,) = homes(home)
    return [transcript.path for transcript in look(listed_home).transcripts if transcript.kind is TranscriptKind.MAIN]


@needs_corpus
def test_reads_agree_with_proven_content(capsys: pytest.CaptureFixture[str]) -> None:
    """Every read of a file that the session had changed gives its proven content, or the reason why not is known."""
    checks = [check for path in mains(HOME) for check in check_reads(threadline.read(path, continued=False))]
    counts = Counter(check.explanation for check in checks)
    proofs = Counter(check.proven for check in checks)
    agree = counts[Explanation.AGREES]
    with capsys.disabled():
        compared = f"{len(checks)}, {sum(check.compared for check in checks):,} lines compared"
        print(f"\nreads after a change: {compared}; {agree} agree ({agree / len(checks):.1%})")  # noqa: T201 - figures
        print(f"by explanation: {dict(counts)}; by proof: {dict(proofs)}")  # noqa: T201 - the same
    assert [str(check.place) for check in checks if check.explanation is Explanation.NONE] == []
    assert len(checks) >= 200
    assert agree / len(checks) > 0.9


@needs_corpus
def test_every_session_has_a_state_and_a_diff(capsys: pytest.CaptureFixture[str]) -> None:
    """Halfway and at the end, every session has a state, and the changes in between."""
    proofs: Counter[ProofLevel] = Counter()
    diffs: Counter[bool] = Counter()
    for path in mains(HOME):
        session = threadline.read(path, continued=False)
        middle = session.main.entries[len(session.main.entries) // 2].place
        middle_state, end = state_at(session, middle), state_at(session)
        proofs.update(file.proven for file in end.files.values())
        diffs.update(change.proven for change in difference(middle_state, end))
        assert set(middle_state.files) <= set(end.files)
    with capsys.disabled():
        print(f"\nfiles at the end, by proof: {dict(proofs)}; diffs, by whether proven: {dict(diffs)}")  # noqa: T201 - figures


@pytest.mark.slow
@pytest.mark.skipif(NEWEST is None, reason="claude_agent_sdk, which brings the client, is not installed")
def test_rebuilds_every_request_of_the_newest_client(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every message, shape and digest that the newest client wrote is rebuilt to the last byte."""
    assert NEWEST is not None
    with start_client(NEWEST, tmp_path) as client:
        play(client)
    transcripts = sorted((client.claude_home / "projects").rglob("*.jsonl"))
    requests = [request for path in transcripts for request in Requests(list(threadline.entries(path)))]
    messages = Counter((str(message.source), message.verified) for request in requests for message in request.messages)
    digests = Counter(request.digest_verified for request in requests)
    with capsys.disabled():
        print(f"\n{NEWEST.version}: {len(requests)} requests, digests {dict(digests)}, messages {dict(messages)}")  # noqa: T201 - figures
    assert len(requests) >= 10
    assert [str(request.place) for request in requests if not request.verified] == []
    assert digests[True] == len(requests)
