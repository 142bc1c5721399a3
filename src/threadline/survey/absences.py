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
    lower = sum(1 for one in here if one.is_lower_bound)
    if lower:
        told = "1 output is a lower bound" if lower == 1 else f"{lower:,} outputs are lower bounds"
        yield Missing("lower-bound", f"{told}: the final count was never written", lower)
    yield from _unpriced(here)
    if problems:
        told = "1 line or transcript" if len(problems) == 1 else f"{len(problems):,} lines or transcripts"
        yield Missing("problems", f"{told} could not be read", len(problems), tuple(one.place for one in problems))
    yield from _compacted(here, compactions)
    made = Counter(name for one in here if not one.part for name in one.calls)
    for tool, text in _SIDE_CALLS.items():
        if made[tool]:
            yield Missing(tool, f"{_number(made[tool], f'{tool} call')}: {text}", made[tool])
    text = "calls that Claude Code makes on the side are in no transcript: titles, summaries, hooks, classifiers"
    yield Missing("side-calls", text)


def _unpriced(here: Sequence[Charge]) -> Iterator[Missing]:
    models = Counter(one.model or "(none)" for one in here if one.rate is None)
    if models:
        named = ", ".join(f"{model} ({number:,})" for model, number in models.most_common(_FEW))
        more = f" and {_number(len(models) - _FEW, 'model')} more" if len(models) > _FEW else ""
        count = models.total()
        told = "1 charge has" if count == 1 else f"{count:,} charges have"
        yield Missing("unpriced", f"{told} no price: {named}{more}", count)


def _compacted(here: Sequence[Charge], compactions: Sequence[Compacted]) -> Iterator[Missing]:
    if not compactions:
        return
    sent = sum(one.tokens for one in compactions)
    size = f"; about {sent:,} tokens were sent for that" if sent else ""
    told = sum(1 for one in here if (one.agent or "").startswith("acompact"))
    own = f"; {_number(told, 'charge')} of side agents for it counted" if told else ""
    text = f"{_number(len(compactions), 'compaction')}: what wrote the summary is in no entry{size}{own}"
    yield Missing("compactions", text, len(compactions))


def _number(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else noun + 's'}"
