"""Lost: what was there when the server began and is not any more, which pages say instead of showing nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup
from msgspec.structs import replace

from threadline.errors import NotFound
from threadline.render.html.element import el, join
from threadline.render.html.words import shown
from threadline.web import addresses
from threadline.web.page import Made, Make, Page

if TYPE_CHECKING:
    from threadline.web.asked import Asked

_OF_NO_HOME = frozenset({addresses.DOCTOR, addresses.KEYS})
"""Pages that are right without a home, or say themselves that it is gone."""


def concerns(page: str) -> bool:
    """Whether the page at a path is about what lies in all homes."""
    return page not in _OF_NO_HOME and not page.startswith(f"{addresses.SESSION}/")


def sentence(homes: Sequence[Path], *, is_kept: bool) -> str:
    """What to say of homes that are lost."""
    named = ", ".join(repr(str(home)) for home in homes)
    begun = f"The home {named} is" if len(homes) == 1 else f"The homes {named} are"
    told = "only what the keep has of it is shown" if is_kept else "nothing of it is shown"
    return f"{begun} not there any more: {told if len(homes) == 1 else told.replace('of it', 'of them')}."


def unless_gone(make: Make) -> Make:
    """What is made for a page that has shown the session (`seen=1`): that it is gone is an answer, and no error."""

    def made(asked: Asked) -> Made:
        try:
            return make(asked)
        except NotFound as error:
            if not asked.flag("seen"):
                raise
            said = "This session is not there any more; what is shown was read before."
            return Page("Gone", "gone", el("p", shown(str(error))), {"gone": said})

    return made


def with_word(made: Made, said: str) -> Made:
    """A page with the sentence above all else that it says."""
    if not isinstance(made, Page):
        return made
    word: Markup = el("p", shown(said), class_="problem", role="status")
    return replace(made, main=join((word, made.main)))
