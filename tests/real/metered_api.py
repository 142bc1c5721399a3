"""The stand-in for the API with exact token counts: it knows the size of every block, and what the cache holds.

Run as a program: `metered_api.py LOG`. It prints its address. Each request becomes a line of the log: the blocks of its
prompt in order and of its reply, each with an owner and its tokens, and the usage that was reported for it.

A block of text has a token per four characters, and the result of a call one per three, because code is denser. What
was sent before is read from the cache, the last tokens are not cached, and everything between them is written to it.
"""

from __future__ import annotations

import http.server
import importlib.util
import io
import json
import sys
from pathlib import Path
from typing import Any

_API = Path(__file__).parents[3] / "shared/client/api.py"
_UNCACHED = 3
_Meter = list[tuple[str, str, int]]


def _load_api() -> Any:
    spec = importlib.util.spec_from_file_location("api", _API)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(_text(block.get("text") or block.get("content") or "") for block in content or ())


def _meter_block(block: Any) -> tuple[str, str, int]:
    """A block's owner, what identifies it in the cache, and its tokens."""
    if isinstance(block, str):
        block = {"type": "text", "text": block}
    match block.get("type"):
        case "tool_use":
            text = block["name"] + json.dumps(block["input"])
            owner, tokens = f"call {block['id']}", len(text) // 4
        case "tool_result":
            text = _text(block.get("content"))
            owner, tokens = f"result {block['tool_use_id']}", len(text) // 3
        case "thinking":
            text = block["thinking"]
            owner, tokens = "thinking", len(text) // 4
        case _:
            text = block.get("text", "")
            owner, tokens = f"text {text[:40]}", len(text) // 4
    return owner, f"{owner} {text}", max(1, tokens)


def _meter_prompt(request: dict[str, Any]) -> _Meter:
    system = _text(request.get("system")) + json.dumps(request.get("tools", []))
    meter = [("system", "system", len(system) // 4)]
    for message in request.get("messages", ()):
        content = message.get("content") or []
        meter += map(_meter_block, [content] if isinstance(content, str) else content)
    return meter


class _Cache:
    """What was sent before, by conversation."""

    def __init__(self) -> None:
        self._prompts: list[_Meter] = []

    def count_read(self, prompt: _Meter) -> int:
        """How many tokens of a prompt are in the cache. The prompt is there afterwards."""
        best = max((self._common(prompt, other) for other in self._prompts), default=0)
        self._prompts.append(prompt)
        return best

    @staticmethod
    def _common(prompt: _Meter, other: _Meter) -> int:
        tokens = 0
        for block, known in zip(prompt, other, strict=False):
            if block != known:
                break
            tokens += block[2]
        return min(tokens, sum(block[2] for block in other) - _UNCACHED)


def _handler(log: Path) -> type[Any]:
    base: Any = _load_api().Handler
    cache = _Cache()

    class Handler(base):  # type: ignore[misc]  # loaded from a file
        """Replaces the usage in the answers."""

        rfile: io.BufferedIOBase
        usage: dict[str, Any]
        prompt: _Meter

        def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            request = json.loads(raw) if raw else {}
            self.prompt = _meter_prompt(request)
            self.reply: list[Any] = []
            self.model = request.get("model")
            if "/messages" in self.path and "count_tokens" not in self.path:
                size = sum(tokens for _owner, _text, tokens in self.prompt)
                read = min(cache.count_read(self.prompt), size - _UNCACHED)
                written = size - _UNCACHED - read
                self.usage = {
                    "input_tokens": _UNCACHED,
                    "cache_creation_input_tokens": written,
                    "cache_read_input_tokens": read,
                    "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
                }
            self.rfile = io.BytesIO(raw)
            super().do_POST()

        def stream(self, index: int, block: dict[str, Any]) -> None:
            self.reply.append(_meter_block(block))
            super().stream(index, block)

        def event(self, name: str, value: dict[str, Any]) -> None:
            if name == "message_start":
                value["message"]["usage"] |= self.usage
            elif name == "message_delta":
                output = sum(tokens for _owner, _text, tokens in self.reply)
                value["usage"] = {"output_tokens": output}
                row = {
                    "model": self.model,
                    "prompt": [(owner, tokens) for owner, _text, tokens in self.prompt],
                    "reply": [(owner, tokens) for owner, _text, tokens in self.reply],
                    "usage": {**self.usage, "output_tokens": output},
                }
                with log.open("a") as file:
                    file.write(json.dumps(row) + "\n")
            super().event(name, value)

    return Handler


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(Path(sys.argv[1])))
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
