"""Pictures are shown with their size where they are safe, and named where not."""

from __future__ import annotations

import base64
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.render.html.calling import SCENE, Page
from tests.render.html.tools import DOT
from tests.render.reading import session
from tests.transcripts import Pen, Row, prompt, reply

from threadline.render import View
from threadline.render.html.images import image_size, render_call_images, render_images

_JPEG = b"\xff\xd8\xff\xe0\x00\x06JFIF\xff\xc0\x00\x0b\x08" + struct.pack(">HH", 30, 40) + b"\x01"
_BITS = (39) | (29 << 14)
SIZES = {
    "image/png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", 40, 30),
    "image/gif": b"GIF89a" + struct.pack("<HH", 40, 30),
    "image/jpeg": _JPEG,
    "image/webp": b"RIFF....WEBPVP8L....\x2f" + struct.pack("<I", _BITS),
}


def block(kind: str = "image/png", data: str = DOT) -> dict[str, Any]:
    """A picture as a message holds it."""
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}


@pytest.mark.parametrize("kind", SIZES)
def test_the_size_is_told_by_the_first_bytes(kind: str) -> None:
    """Each kind that is shown says how wide and high it is."""
    raw = SIZES[kind] + b"\0" * 40
    assert image_size(kind, base64.b64encode(raw).decode()) == (40, 30)


@given(st.sampled_from([*SIZES, "image/svg+xml"]), st.binary(max_size=60) | st.just(b"\xff\xd8\xff\xff\xff"))
def test_any_bytes_have_a_sane_size_or_none(kind: str, raw: bytes) -> None:
    """Bytes that are no picture, or half of one, have no size; none is absurd."""
    for data in (SIZES.get(kind, b"")[:7] + raw, raw):
        found = image_size(kind, base64.b64encode(data).decode())
        assert found is None or all(0 < one <= 30_000 for one in found)
    assert image_size(kind, "not base64 …") is None


def test_a_prompt_s_pictures_are_shown(tmp_path: Path) -> None:
    """Each picture of an entry is an image with its number and its size, loaded when it comes near."""
    whole = session(tmp_path, prompt([{"type": "text", "text": "see"}, block(), block()]))
    drawn = Page(render_images(whole.main.entries[0], "L1", SCENE))
    assert drawn.links == ["image/L1/1", "image/L1/2"]
    assert drawn.attributes.count(("loading", "lazy")) == 2
    assert drawn.attributes.count(("height", "1")) == 2


@pytest.mark.parametrize(
    "source",
    [block("image/svg+xml"), block("text/html"), {"type": "image", "source": {"type": "url", "url": "http://x"}}],
)
def test_what_may_hold_more_than_a_picture_is_named(source: dict[str, Any], tmp_path: Path) -> None:
    """Other kinds, and pictures that lie elsewhere, are neither shown nor fetched."""
    whole = session(tmp_path, prompt([source]))
    drawn = Page(render_images(whole.main.entries[0], "L1", SCENE))
    assert drawn.links == []
    assert drawn.text == "(image)"


def test_a_view_without_pictures_names_them(tmp_path: Path) -> None:
    """Where the view wants none, none is loaded."""
    whole = session(tmp_path, prompt([block()]))
    assert Page(render_images(whole.main.entries[0], "L1", replace(SCENE, view=View(images=False)))).text == "(image)"


def test_two_results_of_one_entry_keep_their_own_pictures(tmp_path: Path) -> None:
    """A picture is numbered among all of its entry, and shown with the call that gave it; a document is named."""

    def both(pen: Pen) -> Any:
        uses = [{"type": "tool_use", "id": f"toolu_{n}", "name": "Read", "input": {}} for n in (1, 2)]
        yield from reply(*uses)(pen)
        results: list[Row] = [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": [block()]},
            {"type": "tool_result", "tool_use_id": "toolu_2", "content": [block(), {"type": "document", "title": "D"}]},
        ]
        yield pen.chain("user", message={"role": "user", "content": results})

    whole = session(tmp_path, prompt("p"), both)
    first, second = (Page(render_call_images(call, SCENE)) for call in whole.calls)
    assert [link[-2:] for link in (*first.links, *second.links)] == ["/1", "/2"]
    assert second.text == "(document: D)"
