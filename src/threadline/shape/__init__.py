"""Convert JSON values to structs without losing anything.

- `Shape` is the base class of every struct read from disk.
- `fit` builds a struct from a value that does not quite match it, and reports each mismatch.
- `strict_type` derives a type that rejects unknown fields; `find_unknown` lists the unknown fields and tags of a value.
- `lenient_loads` decodes JSON that the fast decoder rejects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import export_lazily

if TYPE_CHECKING:
    from threadline.shape.base import OTHER_TAG, OWN_PREFIX, Shape
    from threadline.shape.drift import UnknownPart, find_unknown, strict_type
    from threadline.shape.lenient import LenientValue, Misfit, fit, lenient_loads, wire_fields

export_lazily(
    __name__,
    {
        "base": ["OTHER_TAG", "OWN_PREFIX", "Shape"],
        "drift": ["UnknownPart", "find_unknown", "strict_type"],
        "lenient": ["LenientValue", "Misfit", "fit", "lenient_loads", "wire_fields"],
    },
)
