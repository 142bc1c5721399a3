"""How a JSON value becomes a struct, losing nothing.

`Shape` is what every noun read from disk is made of; `fit` makes one from a value that does not quite
have its shape; `strict` is its twin that refuses unknown fields; `unknown` names what a shape does not know;
`loads` reads JSON that the fast decoder refuses.
"""

from threadline.shape.drift import UnknownPart, find_unknown, strict_type
from threadline.shape.lenient import (
    BOM,
    OTHER_TAG,
    OWN_PREFIX,
    LenientValue,
    Misfit,
    Shape,
    fit,
    lenient_loads,
    strip_line,
    wire_fields,
)

__all__ = [
    "BOM",
    "OTHER_TAG",
    "OWN_PREFIX",
    "LenientValue",
    "Misfit",
    "Shape",
    "UnknownPart",
    "find_unknown",
    "fit",
    "lenient_loads",
    "strict_type",
    "strip_line",
    "wire_fields",
]
