"""A line of a transcript without what must not be shared."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from threadline.render.redaction import Redactor

IMAGE = "<image>"
"""What stands where a picture's bytes stood."""
_FEW = 256
_MEDIA = ("media_type", "mediaType", "mimeType")
_DEEP = 300
_ENDS = re.compile(rb"[\r\n]+\Z")


class Lines:
    """Learns from lines and redacts them; pictures and documents in base64 go unless `images`."""

    def __init__(self, redactor: Redactor, *, images: bool) -> None:
        self._redactor = redactor
        self._images = images

    def learn(self, raw: bytes) -> None:
        """Learn what a line tells to be secret."""
        value = _decoded(raw)
        if value is None:
            self._redactor.learn(raw.decode(errors="replace"))
        else:
            self._redactor.learn_value(bare(value))

    def redact(self, raw: bytes, place: str) -> bytes:
        """The line without it; its end stays as it is. What is no JSON is a text."""
        value = _decoded(raw)
        end = found[0] if (found := _ENDS.search(raw)) else b""
        if value is None:
            body = raw[: len(raw) - len(end)].decode(errors="replace")
            return self._redactor.redact(body, place).encode(errors="replace") + end
        shown = self._redactor.redact_value(bare(value), f"{place}$", learnt=True)
        return _encoded(put_back(shown, value) if self._images else shown) + end


def bare(value: Any) -> Any:
    """A tree without the bytes of pictures and documents; what holds none is given back as it is."""
    return _without(value, 0)


def _without(value: Any, depth: int) -> Any:
    if depth > _DEEP:
        return None
    if isinstance(value, dict):
        made = {key: _without(one, depth + 1) for key, one in value.items()}
        if _holds_bytes(value):
            made[_key(value)] = IMAGE
        return made
    if isinstance(value, list):
        return [_without(one, depth + 1) for one in value]
    return value


def put_back(shown: Any, value: Any) -> Any:
    """The redacted tree with the bytes of its pictures again."""
    if isinstance(value, dict) and isinstance(shown, dict):
        made = {key: put_back(one, old) for (key, one), old in zip(shown.items(), value.values(), strict=False)}
        if _holds_bytes(value) and _is_picture(value):
            made[_key(value)] = value[_key(value)]
        return made
    if isinstance(value, list) and isinstance(shown, list):
        return [put_back(one, old) for one, old in zip(shown, value, strict=False)]
    return shown


def _key(value: dict[str, Any]) -> str:
    return "data" if "data" in value else "base64"


def _holds_bytes(value: dict[str, Any]) -> bool:
    """Whether it is the source of a picture or a document: base64 and a media type, in a message or a result."""
    data = value.get("data", value.get("base64"))
    if not isinstance(data, str) or not data:
        return False
    told = value.get("type") == "base64" or any(key in value for key in _MEDIA)
    return told or ("base64" in value and len(data) > _FEW)


def _is_picture(value: dict[str, Any]) -> bool:
    return any(str(value.get(key)).startswith("image/") for key in (*_MEDIA, "type"))


def _decoded(raw: bytes) -> Any:
    """The line's JSON; None where it is none. Python's reader takes what the fast one refuses: half pairs, NaN."""
    if not raw.strip():
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return json.loads(raw.decode(errors="replace"))
    except (ValueError, RecursionError):
        return None


def _encoded(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, RecursionError, OverflowError, ValueError):
        return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()
