"""The struct every noun read from disk is made of."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, inspect

OWN = "threadline:"
"""What our own wire names start with: values that threadline sets and no writer means."""

OTHER = f"{OWN}other"
"""The tag of the one member of a tagged union that stands for all tags nobody knows.

No writer means it; `fit` makes such a member from any value whose tag is unknown.
"""


class Shape(Struct, frozen=True, gc=False, rename="camel", repr_omit_defaults=True):
    """A frozen struct with a default for every field, named in snake_case and read from camelCase.

    The garbage collector does not track it (`gc=False`): JSON has no cycles, and tracking a million
    small objects costs more than decoding them.
    """


def wire_fields(shape: type[Struct]) -> list[inspect.Field]:
    """The fields that are read from disk, without those that threadline sets itself."""
    info: Any = inspect.type_info(shape)
    return [field for field in info.fields if not field.encode_name.startswith(OWN)]
