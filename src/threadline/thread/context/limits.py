"""How large a window may grow: 200,000 tokens, unless something tells of a million."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from threadline.model.agent import Agent
from threadline.model.context import Limit, Window
from threadline.model.entries import ApiRequestEntry, AssistantEntry, CostStateEntry, Entry

USUAL, LONG = 200_000, 1_000_000
_MARK, _BETA = "[1m]", "context-1m"


class Limits:
    """The limits of one agent's models. Other agents of the session may tell of a model, too."""

    def __init__(self, agent: Agent, every: Iterable[Sequence[Entry]], windows: Sequence[Window]) -> None:
        self._told: dict[str, Limit] = {}
        for entries in every:
            for entry in entries:
                self._hear(entry)
        for one in windows:
            self._see(one.model, one.prompt, f"request {one.number} was larger than {{}}")
        last = windows[-1].model if windows else None
        for compaction in agent.compactions:
            self._see(last, compaction.tokens_before or 0, "a compaction began at more than {}")

    def of(self, model: str | None) -> Limit:
        """The limit of a model."""
        return self._told.get(_name(model)) or Limit(USUAL, "nothing tells of more than 200,000 tokens")

    def _hear(self, entry: Entry) -> None:
        match entry:
            case CostStateEntry():
                for name, used in (entry.model_usage or {}).items():
                    window = used.context_window or 0
                    if window > 0:
                        self._set(name, window, "the session's own totals name the window's size")
                    elif _MARK in name:
                        self._set(name, LONG, f"the session's own totals name {name}")
            case ApiRequestEntry(params=dict(params)):
                betas, model = params.get("betas"), params.get("model")
                if isinstance(model, str) and isinstance(betas, list) and any(_BETA in str(one) for one in betas):
                    self._set(model, LONG, "the request asked for it")
            case AssistantEntry() if entry.message is not None:
                named = (entry.message.model or "", entry.requested_model or "")
                if any(_MARK in name for name in named):
                    self._set(entry.message.model, LONG, f"the model is named {_MARK}")

    def _see(self, model: str | None, tokens: int, why: str) -> None:
        """A prompt of that size was sent, so the limit is no smaller."""
        known = self.of(model).tokens
        if tokens <= known:
            return
        above = next((one for one in (LONG,) if tokens <= one), tokens)
        self._set(model, above, why.format(f"{known:,} tokens"))

    def _set(self, model: str | None, tokens: int, why: str) -> None:
        name = _name(model)
        if name not in self._told or tokens > self._told[name].tokens:
            self._told[name] = Limit(tokens, why)


def _name(model: str | None) -> str:
    return (model or "").replace(_MARK, "")
