"""The base class of every struct read from disk, and the names that threadline reserves in them."""

from __future__ import annotations

from msgspec import Struct

OWN_PREFIX = "threadline:"
"""Prefix of the wire names of fields that threadline sets itself and no transcript contains."""

OTHER_TAG = f"{OWN_PREFIX}other"
"""The tag of the member of a tagged union that represents all unknown tags.

No transcript contains it. `fit` builds this member from any value whose tag is unknown.
"""


class Shape(Struct, frozen=True, gc=False, rename="camel", repr_omit_defaults=True):
    """A frozen struct with a default for every field, named in snake_case and read from camelCase.

    The garbage collector does not track it (`gc=False`): JSON has no cycles, and tracking a million
    small objects costs more than decoding them.
    """
