"""What must not be shared, taken out of texts: secrets, addresses, names, homes."""

from __future__ import annotations

from threadline.render.redaction.finding import Finding
from threadline.render.redaction.redactor import Redactor, leftovers
from threadline.render.redaction.settings import Settings

__all__ = ["Finding", "Redactor", "Settings", "leftovers"]
