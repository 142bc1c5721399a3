"""Pictures of an entry: shown where the view wants them and their kind is safe, else named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from threadline.model.block import ImageBlock, ToolResultBlock
from threadline.model.entries import AssistantEntry, Entry, UserEntry
from threadline.render.html.element import el, join
from threadline.render.html.scene import Scene

SAFE = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Kinds of pictures that can hold nothing but a picture."""


def images(entry: Entry) -> Iterator[ImageBlock]:
    """Every picture of an entry in order, those inside results included."""
    message = entry.message if isinstance(entry, UserEntry | AssistantEntry) else None
    for block in message.blocks if message is not None else ():
        if isinstance(block, ImageBlock):
            yield block
        elif isinstance(block, ToolResultBlock) and isinstance(block.content, list):
            inner: Any = block.content
            yield from (one for one in inner if isinstance(one, ImageBlock))


def source(image: ImageBlock) -> tuple[str, str] | None:
    """The kind and the base64 of a picture that may be shown."""
    given = image.source if isinstance(image.source, dict) else {}
    kind, data = given.get("media_type"), given.get("data")
    return (kind, data) if isinstance(kind, str) and isinstance(data, str) and kind in SAFE else None


def pictures(entry: Entry, anchor: str, scene: Scene) -> Markup:
    """The pictures of an entry."""
    return join(_picture(image, anchor, at, scene) for at, image in enumerate(images(entry), 1))


def _picture(image: ImageBlock, anchor: str, number: int, scene: Scene) -> Markup:
    found = source(image) if scene.view.images else None
    address = scene.links.image(anchor, number, *found) if found is not None else None
    if address is None:
        return el("span", "(image)", class_="picture")
    return el("img", src=address, alt=f"image {number}", loading="lazy", class_="picture")
