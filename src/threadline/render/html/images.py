"""Show the images of an entry if the view includes them and their type is safe. Otherwise show a placeholder."""

from __future__ import annotations

import binascii
import struct
from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from threadline.model.blocks import AudioBlock, DocumentBlock, ImageBlock, ResourceLinkBlock, ToolResultBlock
from threadline.model.call_summary import text_of
from threadline.model.calls import Call
from threadline.model.entries import AssistantEntry, Entry, UserEntry
from threadline.model.places import CallId
from threadline.render import anchor_of, shorten
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.sections import Scene

SAFE_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Media types that can contain nothing but an image."""
_OTHER_MEDIA: dict[type, str] = {DocumentBlock: "document", AudioBlock: "sound", ResourceLinkBlock: "resource"}


def images_of_entry(entry: Entry) -> Iterator[ImageBlock]:
    """Every image of an entry in order, including those in tool results."""
    return (image for image, _ in _images_with_calls(entry))


def _images_with_calls(entry: Entry) -> Iterator[tuple[ImageBlock, CallId | None]]:
    """Every image, with the call whose result contains it."""
    message = entry.message if isinstance(entry, UserEntry | AssistantEntry) else None
    for block in message.blocks if message is not None else ():
        if isinstance(block, ImageBlock):
            yield block, None
        elif isinstance(block, ToolResultBlock) and isinstance(block.content, list):
            inner: Any = block.content
            yield from ((item, block.tool_use_id) for item in inner if isinstance(item, ImageBlock))


def image_data(image: ImageBlock) -> tuple[str, str] | None:
    """The media type and base64 data of an image that may be shown, or None."""
    source = image.source if isinstance(image.source, dict) else {}
    kind, data = source.get("media_type"), source.get("data")
    return (kind, data) if isinstance(kind, str) and isinstance(data, str) and kind in SAFE_IMAGE_TYPES else None


def render_images(entry: Entry, anchor: str, scene: Scene) -> Markup:
    """Render the images of an entry."""
    return join(_render_image(image, anchor, at, scene) for at, image in enumerate(images_of_entry(entry), 1))


def render_call_images(tool_call: Call, scene: Scene) -> Markup:
    """Render the images in a call's result, and the names of its other media."""
    content: Any = tool_call.block.content if tool_call.block is not None else None
    if not isinstance(content, list) or tool_call.answer is None:
        return EMPTY
    here = anchor_of(tool_call.answer, tool_call.agent)
    images = enumerate(_images_with_calls(tool_call.answer), 1)
    shown = [_render_image(image, here, number, scene) for number, (image, call) in images if call == tool_call.id]
    return join((*shown, *(_media_placeholder(item) for item in content if type(item) in _OTHER_MEDIA)))


def _media_placeholder(item: Any) -> Markup:
    """The kind and name of media that cannot be shown."""
    kind, name = _OTHER_MEDIA[type(item)], text_of(item, "title", "name", "uri", "mime_type")
    return el("span", f"({kind}: {shorten(name, 200)})" if name else f"({kind})", class_="picture")


def _render_image(image: ImageBlock, anchor: str, number: int, scene: Scene) -> Markup:
    kind_and_data = image_data(image) if scene.view.images else None
    address = scene.links.image(anchor, number, *kind_and_data) if kind_and_data is not None else None
    if address is None or kind_and_data is None:
        return el("span", "(image)", class_="picture")
    # With its size an image reserves its space before it is loaded, so nothing below it moves.
    width, height = image_size(*kind_and_data) or (None, None)
    return el("img", src=address, alt=f"image {number}", width=width, height=height, loading="lazy", class_="picture")


_MAX_BASE64 = 64 * 1024
"""Characters of base64 to decode. The size of a JPEG may come after a thumbnail."""
_MAX_PIXELS = 30_000
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_MARKER = 0xFF
_JPEG_BARE_MARKERS = frozenset({0x01, *range(0xD0, 0xDA)})

Size = tuple[int, int]


def image_size(kind: str, data: str) -> Size | None:
    """Width and height in pixels; None if the bytes do not contain them."""
    sample = data[:_MAX_BASE64]
    try:
        size = (
            _SIZE_READERS[kind](binascii.a2b_base64(sample[: len(sample) // 4 * 4])) if kind in _SIZE_READERS else None
        )
    except (ValueError, struct.error):
        return None
    return size if size is not None and all(0 < side <= _MAX_PIXELS for side in size) else None


def _png_size(raw: bytes) -> Size | None:
    if not raw.startswith(b"\x89PNG\r\n\x1a\n") or raw[12:16] != b"IHDR":
        return None
    width, height = struct.unpack_from(">II", raw, 16)
    return width, height


def _gif_size(raw: bytes) -> Size | None:
    if not raw.startswith((b"GIF87a", b"GIF89a")):
        return None
    width, height = struct.unpack_from("<HH", raw, 6)
    return width, height


def _jpeg_size(raw: bytes) -> Size | None:
    at = 2 if raw.startswith(b"\xff\xd8") else len(raw)
    while at + 4 <= len(raw) and raw[at] == _JPEG_MARKER:
        mark = raw[at + 1]
        if mark in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", raw, at + 5)
            return width, height
        at += (
            2
            if mark in _JPEG_BARE_MARKERS
            else 1
            if mark == _JPEG_MARKER
            else 2 + struct.unpack_from(">H", raw, at + 2)[0]
        )
    return None


def _webp_size(raw: bytes) -> Size | None:
    if raw[:4] != b"RIFF" or raw[8:12] != b"WEBP":
        return None
    chunk_type = raw[12:16]
    if chunk_type == b"VP8X":
        return 1 + int.from_bytes(raw[24:27], "little"), 1 + int.from_bytes(raw[27:30], "little")
    if chunk_type == b"VP8L":
        bits = int.from_bytes(raw[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if chunk_type == b"VP8 ":
        width, height = struct.unpack_from("<HH", raw, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


_SIZE_READERS = {"image/png": _png_size, "image/gif": _gif_size, "image/jpeg": _jpeg_size, "image/webp": _webp_size}
