"""The forms a secret takes where it is written down by a machine: escaped, in an address, in base64, in hex."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote, quote_plus

_LEAST_ENCODED = 8


def forms(secret: str) -> set[str]:
    """The secret, and all that stands for it."""
    found = {secret, quote(secret, safe=""), quote(secret), quote_plus(secret)}
    escaped = json.dumps(secret)[1:-1]
    found |= {escaped, json.dumps(secret, ensure_ascii=False)[1:-1], json.dumps(escaped)[1:-1]}
    found |= {quote(secret, safe="").lower(), secret.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}
    raw = secret.encode(errors="surrogatepass")
    if len(raw) >= _LEAST_ENCODED:
        found |= {raw.hex(), raw.hex().upper()}
        for encode in (b64encode, urlsafe_b64encode):
            found |= _within(raw, encode)
    return {form for form in found if form}


def _within(raw: bytes, encode: type(b64encode)) -> set[str]:  # type: ignore[valid-type]
    """What base64 of anything that holds the bytes holds: by where in a group of three they begin."""
    found = {encode(raw).decode().rstrip("=")}
    for shift in range(3):
        # Letters that depend on what stands before or behind are left out.
        whole = encode(bytes(shift) + raw).decode().rstrip("=")
        begin = (0, 2, 3)[shift]
        end = len(whole) - (0 if (shift + len(raw)) % 3 == 0 else 1)
        found.add(whole[begin:end])
    return {form for form in found if len(form) >= _LEAST_ENCODED}
