"""A price file as it lies on disk: ours or LiteLLM's, told apart by its shape."""

from __future__ import annotations

from hashlib import sha256
from os import PathLike, fspath
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from threadline.account.litellm import is_litellm, read_litellm
from threadline.account.price_file import PriceFile, is_price_file, read_price_file
from threadline.account.shipped_prices import shipped_bytes, shipped_digest
from threadline.errors import BadQuery, NotFound, Unreadable

__all__ = ["SHIPPED", "PriceSource", "price_source", "shipped_digest", "shipped_source"]

SHIPPED = "threadline"
"""What the prices that come with threadline are called where a file's name would stand."""

_LARGEST = 64_000_000


class PriceSource(Struct, frozen=True):
    """A price file as it was read: its name, the SHA-256 of its bytes, and what it says."""

    name: str
    digest: str
    prices: PriceFile


def shipped_source() -> PriceSource:
    """The price file that comes with threadline."""
    data = shipped_bytes()
    return PriceSource(SHIPPED, sha256(data).hexdigest(), read_price_file(data, SHIPPED))


def price_source(file: str | PathLike[str]) -> PriceSource:
    """Read a price file of either kind.

    Raises:
        NotFound: there is no such file.
        Unreadable: it cannot be read.
        BadQuery: it is no price file.
    """
    name = fspath(file)
    data = _bytes_of(Path(name), name)
    return PriceSource(name, sha256(data).hexdigest(), _prices_in(data.removeprefix(b"\xef\xbb\xbf"), name))


def _prices_in(data: bytes, name: str) -> PriceFile:
    try:
        fields = msgspec.json.decode(data, type=dict[str, Raw])
    except msgspec.ValidationError:
        raise BadQuery(f"{name} is no price file: it holds no JSON object.") from None
    except (ValueError, RecursionError) as error:
        raise BadQuery(f"{name} is no price file: it is no JSON that can be read ({error}).") from None
    if is_price_file(fields):
        return read_price_file(data, name)
    if is_litellm(fields):
        return read_litellm(data, name)
    raise BadQuery(
        f"{name} is no price file: it has neither the `schema` and `models` of threadline's, "
        "nor entries with `input_cost_per_token`, as LiteLLM's has."
    )


def _bytes_of(path: Path, name: str) -> bytes:
    try:
        with path.open("rb") as opened:
            data = opened.read(_LARGEST + 1)
    except FileNotFoundError:
        raise NotFound(f"There is no price file {name!r}.") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise Unreadable(f"The price file {name!r} cannot be read: {why}.") from None
    if len(data) > _LARGEST:
        raise BadQuery(f"{name} is no price file: it has more than {_LARGEST:,} bytes.")
    return data
