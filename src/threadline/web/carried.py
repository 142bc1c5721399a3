"""Carried: what of a query stays on the way to other pages, as fields of a form; links have it by themselves."""

from __future__ import annotations

from markupsafe import Markup

from threadline.render.html.element import el
from threadline.web.addresses import carried


def carried_fields() -> list[Markup]:
    """Fields that nobody sees: what a form sends is all that the page it leads to is asked."""
    return [el("input", type="hidden", name_=name, value=value) for name, value in carried()]
