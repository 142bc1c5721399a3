"""Addresses of people and machines: e-mail, host names, IP addresses; and which of them tell nothing and stay."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from threadline.render.redaction.span import Span

# All that has an @ in it is found by that, in one search.
_AT = re.compile(rb"@(?=[A-Za-z0-9])(?<![\s/@\"'`<>\\]@)")
_MAIL = re.compile(rb"@((?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24})(?![A-Za-z0-9(-])")
_LOCAL_BACKWARDS = re.compile(rb"[A-Za-z0-9_+-](?:[A-Za-z0-9._%+-]{0,63})")
_PROMPT = re.compile(rb"@([A-Za-z][A-Za-z0-9-]{1,62})(?=:[~/]|[ ][~/][^\s]*[\]$#]| [\w.-]{1,64}\][$#])")
# A login before a host is no e-mail address; the host is nobody's business where it has a password.
_LOGIN = re.compile(rb"://[^\s/@\"'`<>\\]{0,300}\Z")
_HOST = re.compile(rb"@([A-Za-z0-9][A-Za-z0-9.-]{0,200}[A-Za-z0-9])")
_LOGIN_BEFORE = re.compile(rb"://[^\s/@:\"'`<>\\]{0,128}:[^\s/@\"'`<>\\]{1,256}\Z")
_LONGEST_LOGIN = 388
_PUBLIC_HOSTS = re.compile(
    rb"(?i)(?:^|\.)(?:localhost|github\.com|gitlab\.com|bitbucket\.org|azure\.com|visualstudio\.com|pypi\.org|npmjs\.org"
    rb"|docker\.io|ghcr\.io|[0-9.]+|db|redis|postgres|mysql|mongo|rabbitmq|host)\Z"
)
_URL_ENCODED_MAIL = re.compile(rb"%(?:40)((?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24})(?![A-Za-z0-9])")
# Of these nobody is told: reserved for examples, or a machine's own.
_EXAMPLES = re.compile(
    rb"(?i)(?:^|\.)(?:example\.(?:com|org|net|edu)|[a-z0-9-]+\.(?:example|test|invalid)|localhost|users\.noreply\.github\.com)\Z"
)
_MACHINES = frozenset((b"git", b"noreply", b"no-reply", b"hg", b"svn", b"npm", b"go"))
# What looks like a domain behind an @, and is a file, a version or a method.
_NO_DOMAIN = re.compile(
    rb"(?i)(?:^[0-9]x\.|^v[0-9]|\.(?:png|jpe?g|gif|svg|webp|js|mjs|cjs|ts|tsx|jsx|json|css|html|lock|tgz|whl|dot|sum|mean|service|target|timer)\Z)"
)

_DOT = re.compile(
    rb"\.(?=[0-9lich])(?:(?<=[0-9]\.)[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(?![\w-]|\.[0-9])"
    rb"|(?:local|localdomain|internal|intranet|intra|lan|corp|home\.arpa)(?![\w(]|[.-]\w|=))"
)
_QUAD = re.compile(
    rb"(?<![\w.-])(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?![\w-]|\.[0-9])"
)
_NAME_BACKWARDS = re.compile(rb"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+){0,6}")
_VERSION_BEFORE = re.compile(rb"(?i)(?:version|ver|v|release|build|chrome|[a-z]/|section|==|>=|~=|\^)[\"':= ]{0,4}\Z")
_SIX = re.compile(
    rb"(?<![\w:.])(?:[0-9a-fA-F]{1,4}:){2,7}(?::?[0-9a-fA-F]{1,4}){1,7}(?![\w:])|(?<![\w:.])[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){0,6}::(?:[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){0,6})?(?![\w:])|(?<![\w:.])::(?:ffff:)?(?:[0-9a-fA-F]{1,4}:){0,6}[0-9a-fA-F]{1,4}(?![\w:])"
)
# Two in a row, or three in all: a time has two. Behind another letter than those of hex it is a name's.
_COLONS = re.compile(
    rb":(?<![g-zG-Z_\x22):]:)(?::(?![g-zG-Z_\s]|[0-9a-fA-F]{1,4}[g-zG-Z_])|[0-9a-fA-F]{1,4}:[0-9a-fA-F]{1,4}:)"
)
_SCHEMES = frozenset(
    (b"localhost", b"file", b"http", b"https", b"git", b"npm", b"workspace", b"link", b"portal", b"latest")
)
_STAYS = tuple(
    map(
        ipaddress.ip_network,
        (
            *("127.0.0.0/8", "0.0.0.0/8", "255.0.0.0/8", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"),
            *("224.0.0.0/4", "169.254.169.254/32", "8.8.8.8/32", "8.8.4.4/32", "1.1.1.1/32", "1.0.0.1/32"),
            *("9.9.9.9/32", "::/127", "2001:db8::/32", "ff00::/8"),
        ),
    )
)
_KNOWN_HOSTS = frozenset(
    (
        b"host.docker.internal",
        b"metadata.google.internal",
        b"gateway.docker.internal",
        b"kubernetes.docker.internal",
        b"host.containers.internal",
    )
)
_NO_HOST = frozenset(
    (
        b"env settings config threading sys os this self cls process global state app ctx config request window process"
        b" compose docker-compose"
        b" override values vars usr docker application appsettings bash bashrc zsh gitconfig node"
        b" http https email store package project init main test tests dev prod mcp claude"
    ).split()
)


def addresses(view: bytes) -> Iterator[Span]:
    """All e-mail addresses, IP addresses, host names of inner networks, and those of prompts."""
    yield from _mails(view)
    yield from _dotted(view)
    yield from _sixes(view)


def _before(view: bytes, at: int, pattern: re.Pattern[bytes], most: int) -> bytes:
    """What ends at `at` and has the form that the pattern tells of it backwards."""
    found = pattern.match(view[max(0, at - most) : at][::-1])
    return found[0][::-1] if found else b""


def _mails(view: bytes) -> Iterator[Span]:
    for sign in _AT.finditer(view):
        at = sign.start()
        mail = _MAIL.match(view, at)
        if mail:
            yield from _mail(view, mail)
        yield from _hosts_at(view, at)
    for mail in _URL_ENCODED_MAIL.finditer(view):
        yield from _mail(view, mail)


def _mail(view: bytes, found: re.Match[bytes]) -> Iterator[Span]:
    local = _local(view, found.start())
    start = found.start() - len(local)
    if not local or _LOGIN.search(view, max(0, start - 300), start):
        return
    if local.lower() not in _MACHINES and not _EXAMPLES.search(found[1]) and not _NO_DOMAIN.search(found[1]):
        yield Span(start, found.end(), "email")


def _local(view: bytes, at: int) -> bytes:
    """What stands before an @; an escape that ends there is no part of it."""
    local = _before(view, at, _LOCAL_BACKWARDS, 64)
    begin = at - len(local)
    if view[max(0, begin - 1) : begin] == b"\\" and local[:1] in {b"n", b"r", b"t"}:
        local = local[1:]
    return local.lstrip(b".%+-")


def _hosts_at(view: bytes, at: int) -> Iterator[Span]:
    """Hosts behind a login with a password, and those of prompts."""
    login = view.rfind(b"://", max(0, at - _LONGEST_LOGIN), at)
    found = _HOST.match(view, at) if login >= 0 and _LOGIN_BEFORE.match(view, login, at) else None
    if found and not _PUBLIC_HOSTS.search(found[1]) and not _EXAMPLES.search(found[1]):
        yield Span(*found.span(1), "host")
    found = _PROMPT.match(view, at)
    if found:
        local = _local(view, at)
        if local and local.lower() not in _MACHINES and found[1].lower() not in _SCHEMES:
            yield Span(at - len(local), at, "user")
            yield Span(*found.span(1), "host")


def _dotted(view: bytes) -> Iterator[Span]:
    done = 0
    for dot in _DOT.finditer(view):
        if view[dot.start() + 1 : dot.start() + 2].isdigit():
            quad = _QUAD.search(view, max(0, dot.start() - 4), dot.end())
            if quad and quad.start() >= done and _is_address(quad[0], view[max(0, quad.start() - 12) : quad.start()]):
                done = quad.end()
                yield Span(*quad.span(), "ip")
            continue
        name = _before(view, dot.start(), _NAME_BACKWARDS, 200)
        start = dot.start() - len(name)
        whole = view[start : dot.end()].lower()
        first = view[max(0, start - 1) : start]
        if (
            name
            and first not in {b".", b"_", b"$", b"\\"}
            and whole not in _KNOWN_HOSTS
            and name.split(b".")[-1].lower() not in _NO_HOST
        ):
            yield Span(start, dot.end(), "host")


def _is_address(quad: bytes, before: bytes) -> bool:
    """Whether four numbers are an address that tells something, and no version."""
    if _VERSION_BEFORE.search(before):
        return False
    address = ipaddress.ip_address(quad.decode())
    return not any(address in network for network in _STAYS if network.version == 4)  # noqa: PLR2004 - IPv4


def _sixes(view: bytes) -> Iterator[Span]:
    done = 0
    for colons in _COLONS.finditer(view):
        found = _SIX.search(view, max(done, colons.start() - 5), colons.end() + 45)
        if found is None or not found.start() <= colons.start() < found.end():
            continue
        done = found.end()
        try:
            address = ipaddress.ip_address(found[0].decode())
        except ValueError:
            continue
        if any(address in network for network in _STAYS if network.version == 6):  # noqa: PLR2004 - IPv6
            continue
        said = found[0]
        # `a::b` is a name in many languages, and `12:34:56` a time.
        if said.count(b":") > 2 and any(49 <= byte <= 57 for byte in said):  # noqa: PLR2004 - a digit is in each of them
            yield Span(*found.span(), "ip")
