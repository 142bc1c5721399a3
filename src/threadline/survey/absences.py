"""What a sum is known to lack: calls that no transcript holds, outputs never written, models without a price."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from threadline.model.charge import Charge
from threadline.model.problem import Problem
from threadline.model.receipt import Missing
from threadline.parse.mentions import Compacted

_SIDE_CALLS = {
    "WebFetch": "each page was summarised by a small model, in a call that no transcript holds",
    "WebSearch": "each ran in a call of its own, which no transcript holds; only the fee is counted",
}
_FEW = 3


def absences(
    here: Sequence[Charge], compactions: Sequence[Compacted], problems: Sequence[Problem]
) -> Iterator[Missing]:
    """What these charges are known to lack, what is always missing last."""
    lower = [one for one in here if one.is_lower_bound]
    if lower:
        text = "outputs are lower bounds: the version that wrote them kept what the stream began with"
        yield Missing("lower-bound", text, len(lower))
    yield from _unpriced(here)
    if problems:
        text = f"{'lines or transcripts' if len(problems) > 1 else 'line or transcript'} could not be read"
        yield Missing("problems", text, len(problems), tuple(one.place for one in problems))
    yield from _compacted(here, compactions)
    made = Counter(name for one in here if not one.part for name in one.calls)
    for tool, text in _SIDE_CALLS.items():
        if made[tool]:
            yield Missing(tool, f"{tool} {'calls' if made[tool] > 1 else 'call'}: {text}", made[tool])
    text = "calls that Claude Code makes on the side are in no transcript: titles, summaries, hooks, classifiers"
    yield Missing("side-calls", text)


def _unpriced(here: Sequence[Charge]) -> Iterator[Missing]:
    models = Counter(one.model or "(none)" for one in here if one.rate is None)
    if models:
        named = ", ".join(f"{model} ({number:,})" for model, number in models.most_common(_FEW))
        more = f" and {len(models) - _FEW} more models" if len(models) > _FEW else ""
        yield Missing("unpriced", f"charges have no price: {named}{more}", models.total())


def _compacted(here: Sequence[Charge], compactions: Sequence[Compacted]) -> Iterator[Missing]:
    if not compactions:
        return
    sent = sum(one.tokens for one in compactions)
    size = f", and sent about {sent:,} tokens" if sent else ""
    told = sum(1 for one in here if (one.agent or "").startswith("acompact"))
    own = f"; {told:,} of a side agent's are counted" if told else ""
    text = f"compactions: the calls that wrote the summaries are in no entry{size}{own}"
    yield Missing("compactions", text, len(compactions))
