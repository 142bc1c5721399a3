"""How a JSON value becomes a struct, losing nothing.

`Shape` is what every noun read from disk is made of; `fit` makes one from a value that does not quite
have its shape; `strict` is its twin that refuses unknown fields; `unknown` names what a shape does not know;
`loads` reads JSON that the fast decoder refuses.
"""

from threadline.shape.fit import Misfit, fit
from threadline.shape.loads import BOM, Loaded, bare, loads
from threadline.shape.shape import OTHER, OWN, Shape, wire_fields
from threadline.shape.strict import strict
from threadline.shape.unknown import Unknown, unknown

__all__ = [
    "BOM",
    "OTHER",
    "OWN",
    "Loaded",
    "Misfit",
    "Shape",
    "Unknown",
    "bare",
    "fit",
    "loads",
    "strict",
    "unknown",
    "wire_fields",
]
