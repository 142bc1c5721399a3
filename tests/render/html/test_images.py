"""Images are shown with their size if they are safe, and named otherwise."""

from __future__ import annotations

import base64
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.render.html.calls_and_pages import SCENE, Page
from tests.render.html.tool_cases import DOT
from tests.render.sessions import session
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


def image_block(kind: str = "image/png", data: str = DOT) -> dict[str, Any]:
    """An image as a message contains it."""
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}


@pytest.mark.parametrize("kind", SIZES)
def test_reads_the_size_from_the_first_bytes(kind: str) -> None:
    """Every supported type has its width and height in the first bytes."""
    raw = SIZES[kind] + b"\0" * 40
    assert image_size(kind, base64.b64encode(raw).decode()) == (40, 30)


@given(st.sampled_from([*SIZES, "image/svg+xml"]), st.binary(max_size=60) | st.just(b"\xff\xd8\xff\xff\xff"))
def test_any_bytes_have_a_plausible_size_or_none(kind: str, raw: bytes) -> None:
    """Bytes that are not an image, or half of one, have no size or a plausible one."""
    for data in (SIZES.get(kind, b"")[:7] + raw, raw):
        size = image_size(kind, base64.b64encode(data).decode())
        assert size is None or all(0 < length <= 30_000 for length in size)
    assert image_size(kind, "not base64 …") is None


def test_shows_the_images_of_a_prompt(tmp_path: Path) -> None:
    """Each image of an entry has its number and size, and is loaded lazily."""
    sample = session(tmp_path, prompt([{"type": "text", "text": "see"}, image_block(), image_block()]))
    page = Page(render_images(sample.main.entries[0], "L1", SCENE))
    assert page.links == ["image/L1/1", "image/L1/2"]
    assert page.attributes.count(("loading", "lazy")) == 2
    assert page.attributes.count(("height", "1")) == 2


@pytest.mark.parametrize(
    "source",
    [
        image_block("image/svg+xml"),
        image_block("text/html"),
        {"type": "image", "source": {"type": "url", "url": "http://x"}},
    ],
)
def test_names_unsafe_images(source: dict[str, Any], tmp_path: Path) -> None:
    """Other types and external images are neither shown nor fetched."""
    sample = session(tmp_path, prompt([source]))
    page = Page(render_images(sample.main.entries[0], "L1", SCENE))
    assert page.links == []
    assert page.text == "(image)"


def test_a_view_without_images_names_them(tmp_path: Path) -> None:
    """If the view excludes images, none is loaded."""
    sample = session(tmp_path, prompt([image_block()]))
    assert Page(render_images(sample.main.entries[0], "L1", replace(SCENE, view=View(images=False)))).text == "(image)"


def test_two_results_of_one_entry_keep_their_own_images(tmp_path: Path) -> None:
    """An image is numbered within its entry, and shown with its call. A document is named."""

    def two_calls(pen: Pen) -> Any:
        uses = [{"type": "tool_use", "id": f"toolu_{n}", "name": "Read", "input": {}} for n in (1, 2)]
        yield from reply(*uses)(pen)
        results: list[Row] = [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": [image_block()]},
            {
                "type": "tool_result",
                "tool_use_id": "toolu_2",
                "content": [image_block(), {"type": "document", "title": "D"}],
            },
        ]
        yield pen.chain("user", message={"role": "user", "content": results})

    sample = session(tmp_path, prompt("p"), two_calls)
    first, second = (Page(render_call_images(call, SCENE)) for call in sample.calls)
    assert [link[-2:] for link in (*first.links, *second.links)] == ["/1", "/2"]
    assert second.text == "(document: D)"
