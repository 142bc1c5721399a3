"""How a JSON value becomes a struct, losing nothing.

`Shape` is what every noun read from disk is made of; `fit` makes one from a value that does not quite
have its shape; `strict` is its twin that refuses unknown fields; `unknown` names what a shape does not know;
`loads` reads JSON that the fast decoder refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import lazy_exports

if TYPE_CHECKING:
    from threadline.shape.drift import UnknownPart, find_unknown, strict_type
    from threadline.shape.lenient import (
        OTHER_TAG,
        OWN_PREFIX,
        LenientValue,
        Misfit,
        Shape,
        fit,
        lenient_loads,
        wire_fields,
    )

__getattr__ = lazy_exports(
    __name__,
    {
        "drift": ["UnknownPart", "find_unknown", "strict_type"],
        "lenient": [
            "LenientValue",
            "Misfit",
            "OTHER_TAG",
            "OWN_PREFIX",
            "Shape",
            "fit",
            "lenient_loads",
            "wire_fields",
        ],
    },
)
