"""The tools of an entry: the buttons that a script puts into the one that is pointed at."""

from __future__ import annotations

from threadline.render.html.element import el
from threadline.render.html.icons import icon

_DEEDS = (
    ("link", "copy-link", "Copy a link to this entry (y)"),
    ("raw", "raw", "JSON of this entry (r)"),
    ("state", "state", "Files and lists as they stood here (s)"),
    ("markdown", "copy-markdown", "Copy this entry as Markdown (m)"),
)
# Icons without words: what is found in an item would be found in its buttons, too.
TOOLS = el(
    "template",
    el(
        "div",
        *(
            el("button", icon(drawn), type="button", data_deed=deed, title=said, aria_label=said)
            for drawn, deed, said in _DEEDS
        ),
        class_="tools-of",
        role="group",
        aria_label="This entry",
    ),
    id="tools",
)
"""What can be done with an entry; a script puts it into the one that is pointed at."""
