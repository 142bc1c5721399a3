"""Pictures of an entry: shown where the view wants them and their kind is safe, else named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from threadline.model.block import AudioBlock, DocumentBlock, ImageBlock, ResourceLinkBlock, ToolResultBlock
from threadline.model.call import Call
from threadline.model.entries import AssistantEntry, Entry, UserEntry
from threadline.model.ids import CallId
from threadline.render.html.anchor import anchor as anchor_of
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.given import text_of
from threadline.render.html.picture_size import picture_size
from threadline.render.html.scene import Scene
from threadline.render.html.words import one

SAFE = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Kinds of pictures that can hold nothing but a picture."""
_NAMED: dict[type, str] = {DocumentBlock: "document", AudioBlock: "sound", ResourceLinkBlock: "resource"}


def images(entry: Entry) -> Iterator[ImageBlock]:
    """Every picture of an entry in order, those inside results included."""
    return (image for image, _ in _placed(entry))


def _placed(entry: Entry) -> Iterator[tuple[ImageBlock, CallId | None]]:
    """Every picture, with the call whose result it is part of."""
    message = entry.message if isinstance(entry, UserEntry | AssistantEntry) else None
    for block in message.blocks if message is not None else ():
        if isinstance(block, ImageBlock):
            yield block, None
        elif isinstance(block, ToolResultBlock) and isinstance(block.content, list):
            inner: Any = block.content
            yield from ((item, block.tool_use_id) for item in inner if isinstance(item, ImageBlock))


def source(image: ImageBlock) -> tuple[str, str] | None:
    """The kind and the base64 of a picture that may be shown."""
    given = image.source if isinstance(image.source, dict) else {}
    kind, data = given.get("media_type"), given.get("data")
    return (kind, data) if isinstance(kind, str) and isinstance(data, str) and kind in SAFE else None


def pictures(entry: Entry, anchor: str, scene: Scene) -> Markup:
    """The pictures of an entry."""
    return join(_picture(image, anchor, at, scene) for at, image in enumerate(images(entry), 1))


def pictures_of(made: Call, scene: Scene) -> Markup:
    """The pictures that a call gave, and what else it gave that is no text, by name."""
    content: Any = made.block.content if made.block is not None else None
    if not isinstance(content, list) or made.answer is None:
        return EMPTY
    here = anchor_of(made.answer, made.agent)
    found = enumerate(_placed(made.answer), 1)
    shown = [_picture(image, here, at, scene) for at, (image, call) in found if call == made.id]
    return join((*shown, *(_named(item) for item in content if type(item) in _NAMED)))


def _named(item: Any) -> Markup:
    """What cannot be shown, by what it is and what it is called."""
    kind, said = _NAMED[type(item)], text_of(item, "title", "name", "uri", "mime_type")
    return el("span", f"({kind}: {one(said, 200)})" if said else f"({kind})", class_="picture")


def _picture(image: ImageBlock, anchor: str, number: int, scene: Scene) -> Markup:
    found = source(image) if scene.view.images else None
    address = scene.links.image(anchor, number, *found) if found is not None else None
    if address is None or found is None:
        return el("span", "(image)", class_="picture")
    # With its size a picture has its room before it is loaded, and nothing below it moves.
    width, height = picture_size(*found) or (None, None)
    return el("img", src=address, alt=f"image {number}", width=width, height=height, loading="lazy", class_="picture")
