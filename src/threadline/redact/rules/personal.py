"""Find personal data: e-mail addresses, names of people, IP addresses, host names, home directories and user names."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterator
from functools import lru_cache

from threadline.redact.rules.formats import Span
from threadline.redact.rules.heuristics import word_set
from threadline.redact.rules.patterns import compile_lazily
from threadline.redact.rules.prefilter import gate

# Everything with an @ is found in one search for it.
_AT_SIGN = compile_lazily(rb"@(?=[A-Za-z0-9])(?<![\s/@\"'`<>\\]@)")
_EMAIL_DOMAIN = compile_lazily(
    rb"@((?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24})(?![A-Za-z0-9(-])"
)
_LOCAL_BACKWARDS = compile_lazily(rb"[A-Za-z0-9_+-](?:[A-Za-z0-9._%+-]{0,63})")
_SHELL_PROMPT = compile_lazily(rb"@([A-Za-z][A-Za-z0-9-]{1,62})(?=:[~/]|[ ][~/][^\s]*[\]$#]| [\w.-]{1,64}\][$#])")
# A login before a host is not an e-mail address. The host is redacted if the login has a password.
_URL_LOGIN = compile_lazily(rb"://[^\s/@\"'`<>\\]{0,300}\Z")
_HOST = compile_lazily(rb"@([A-Za-z0-9][A-Za-z0-9.-]{0,200}[A-Za-z0-9])")
_LOGIN_BEFORE = compile_lazily(rb"://[^\s/@:\"'`<>\\]{0,128}:[^\s/@\"'`<>\\]{1,256}\Z")
_MAX_LOGIN = 388
_PUBLIC_HOSTS = compile_lazily(
    rb"(?i)(?:^|\.)(?:localhost|github\.com|gitlab\.com|bitbucket\.org|azure\.com|visualstudio\.com|pypi\.org|npmjs\.org"
    rb"|docker\.io|ghcr\.io|[0-9.]+|db|redis|postgres|mysql|mongo|rabbitmq|host)\Z"
)
_URL_ENCODED_EMAIL = compile_lazily(rb"%(?:40)((?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24})(?![A-Za-z0-9])")
_URL_ENCODED_GATE = gate(rb"%40[A-Za-z0-9-]+\.")
# Domains that identify nobody: reserved for examples, or local.
_EXAMPLE_DOMAINS = compile_lazily(
    rb"(?i)(?:^|\.)(?:example\.(?:com|org|net|edu)|[a-z0-9-]+\.(?:example|test|invalid)|localhost"
    rb"|(?:test|tests|foo|bar|domain|email|yourdomain|yourcompany|mydomain|mycompany|your-domain|your-company)\.(?:com|org|net)"
    rb"|[a-z]\.[a-z]{1,3})\Z"
)
_MACHINE_ACCOUNTS = frozenset((b"git", b"noreply", b"no-reply", b"hg", b"svn", b"npm", b"go"))
# Addresses of departments and programs, which identify no person.
_ROLE_ACCOUNTS = (
    frozenset(
        b"abuse bot contact hello help hostmaster info mailer-daemon notifications plugins postmaster press sales"
        b" security support team webmaster".split()
    )
    | _MACHINE_ACCOUNTS
)
# Programs, also with the number that GitHub puts before their name: `198982749+Copilot@users.noreply.github.com`.
_PROGRAM_ACCOUNT = compile_lazily(rb"(?i)(?:[0-9]+\+)?(?:[a-z0-9._-]*[._-]bot|bot|copilot|github-actions|web-flow)\Z")
# Text after an @ that looks like a domain, but is a file, a version or a method.
_NOT_A_DOMAIN = compile_lazily(
    rb"(?i)(?:^[0-9]x\.|^v[0-9]|\.(?:png|jpe?g|gif|svg|webp|js|mjs|cjs|ts|tsx|jsx|json|css|html|lock|tgz|whl|dot|sum|mean|service|target|timer)\Z)"
)

_MAX_PERSON = 82
# The name before an address: words with a capital letter, and particles between them.
_PERSON = compile_lazily(
    rb"((?:(?<![\w?.-])|(?<=\\[nrt]))[A-Z?][A-Za-z?.'-]{0,30}"
    rb"(?: (?:(?:de|der|den|van|von|la|le|di|da|del|dos|bin|al|el|y|af|zu) ){0,2}[A-Z?][A-Za-z0-9?.'-]{0,30}){0,4})"
    rb"\\{0,2}[\"']? \Z"
)

_MAX_FIELDS = 140
_NAME_PART = rb"[A-Za-z?][A-Za-z?.'-]{0,30}"
_FULL_NAME = rb"(" + _NAME_PART + rb"(?: " + _NAME_PART + rb"){1,4})"
# The field before that of an address: `"name": "Ann Lee", "email": "`, `name = "Ann Lee", email = "`.
_NAME_FIELD = compile_lazily(
    rb"\b[Nn]ame\\{0,2}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,2}[\"']"
    + _FULL_NAME
    + rb"\\{0,2}[\"'](?:,|\s|\\[nt]|[0-9]{1,6}[\t?]){1,24}\\{0,2}[\"']?e-?mail"
    + rb"\\{0,2}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,2}[\"']\Z"
)
_DOT = compile_lazily(
    rb"\.(?=[0-9lich])(?:(?<=[0-9]\.)[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(?![\w-]|\.[0-9])"
    rb"|(?:local|localdomain|internal|intranet|intra|lan|corp|home\.arpa)(?![\w(]|[.-]\w|=))"
)
_DOT_GATE = gate(
    rb"[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(?:[^\w-]|\z)"
    rb"|\.(?:local|localdomain|internal|intranet|intra|lan|corp|home\.arpa)(?:[^\w(.=-]|[.-](?:\W|\z)|\z)"
)
_IPV4 = compile_lazily(
    rb"(?<![\w.-])(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?![\w-]|\.[0-9])"
)
_NAME_BACKWARDS = compile_lazily(rb"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+){0,6}")
_VERSION_BEFORE = compile_lazily(
    rb"(?i)(?:version|ver|v|release|build|chrome|[a-z]/|section|==|>=|~=|\^)[\"':= ]{0,4}\Z"
)
_IPV6 = compile_lazily(
    rb"(?<![\w:.])(?:[0-9a-fA-F]{1,4}:){2,7}(?::?[0-9a-fA-F]{1,4}){1,7}(?![\w:])|(?<![\w:.])[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){0,6}::(?:[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){0,6})?(?![\w:])|(?<![\w:.])::(?:ffff:)?(?:[0-9a-fA-F]{1,4}:){0,6}[0-9a-fA-F]{1,4}(?![\w:])"
)
# Two colons in a row, or three in all, because a time has two. After a letter that is not hex, they belong to a name.
_COLONS = compile_lazily(
    rb":(?<![g-zG-Z_\x22):]:)(?::(?![g-zG-Z_\s]|[0-9a-fA-F]{1,4}[g-zG-Z_])|[0-9a-fA-F]{1,4}:[0-9a-fA-F]{1,4}:)"
)
_COLONS_GATE = gate(
    rb"(?:\A|[^g-zG-Z_\x22):]):(?::(?:[^g-zG-Z_\s]|\z)|[0-9a-fA-F]{1,4}:[0-9a-fA-F]{1,4}:)",
)
_NOT_HOSTS_IN_PROMPTS = frozenset(
    (b"localhost", b"file", b"http", b"https", b"git", b"npm", b"workspace", b"link", b"portal", b"latest")
)
_PUBLIC_NETWORKS = tuple(
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
_NOT_HOSTS = frozenset(
    (
        b"env settings config threading sys os this self cls process global state app ctx config request window process"
        b" compose docker-compose"
        b" override values vars usr docker application appsettings bash bashrc zsh gitconfig node"
        b" http https email store package project init main test tests dev prod mcp claude"
    ).split()
)


def find_personal_data(view: bytes, gates: Collection[int], *, strict: bool = False) -> Iterator[Span]:
    """Find everything that identifies a person or a machine; `gates` are the open gates of the view.

    `strict` also finds every path, address, URL and telephone number, even of examples and public sites.
    """
    yield from _find_homes(view, gates, strict=strict)
    yield from _find_emails(view, gates, strict=strict)
    yield from _find_dotted(view, strict=strict) if _DOT_GATE in gates else ()
    yield from _find_ipv6(view, strict=strict) if _COLONS_GATE in gates else ()
    yield from _find_logins(view, gates)
    if strict:
        yield from _find_strictly(view)


def _match_before(view: bytes, at: int, pattern: re.Pattern[bytes], max_length: int) -> bytes:
    """The text that ends at `at` and matches the pattern, which is for the reversed text."""
    match = pattern.match(view[max(0, at - max_length) : at][::-1])
    return match[0][::-1] if match else b""


def _find_emails(view: bytes, gates: Collection[int], *, strict: bool) -> Iterator[Span]:
    for sign in _AT_SIGN.finditer(view) if b"@" in view else ():
        at = sign.start()
        mail = _EMAIL_DOMAIN.match(view, at)
        if mail:
            yield from _email_spans(view, mail, strict=strict)
        yield from _find_hosts_at(view, at)
    for mail in _URL_ENCODED_EMAIL.finditer(view) if _URL_ENCODED_GATE in gates else ():
        yield from _email_spans(view, mail, strict=strict)


def _email_spans(view: bytes, match: re.Match[bytes], *, strict: bool) -> Iterator[Span]:
    """An e-mail address, and the name before it in `Ann Lee <ann@corp.io>`."""
    local = _local_part(view, match.start())
    start = match.start() - len(local)
    if not local or _URL_LOGIN.search(view, max(0, start - 300), start) or _NOT_A_DOMAIN.search(match[1]):
        return
    is_person = local.lower() not in _ROLE_ACCOUNTS and _PROGRAM_ACCOUNT.match(local) is None
    if not strict and (not is_person or _EXAMPLE_DOMAINS.search(match[1]) is not None):
        return
    yield Span(start, match.end(), "email")
    if view[start - 1 : start] == b"<":
        name = _PERSON.search(view, max(0, start - _MAX_PERSON), start - 1)
        if name is not None:
            yield Span(*name.span(1), "name", local_only=b" " not in name[1])
    elif is_person and view[start - 1 : start] in {b'"', b"'"}:
        name = _NAME_FIELD.search(view, max(0, start - _MAX_FIELDS), start)
        if name is not None:
            yield Span(*name.span(1), "name")


def _local_part(view: bytes, at: int) -> bytes:
    """The local part before an @, without an escape that ends right before it."""
    local = _match_before(view, at, _LOCAL_BACKWARDS, 64)
    begin = at - len(local)
    if view[max(0, begin - 1) : begin] == b"\\" and local[:1] in {b"n", b"r", b"t"}:
        local = local[1:]
    return local.lstrip(b".%+-")


def _find_hosts_at(view: bytes, at: int) -> Iterator[Span]:
    """Hosts after a login with a password, and users and hosts in shell prompts."""
    login = view.rfind(b"://", max(0, at - _MAX_LOGIN), at)
    match = _HOST.match(view, at) if login >= 0 and _LOGIN_BEFORE.match(view, login, at) else None
    if match and not _PUBLIC_HOSTS.search(match[1]) and not _EXAMPLE_DOMAINS.search(match[1]):
        yield Span(*match.span(1), "host")
    match = _SHELL_PROMPT.match(view, at)
    if match:
        local = _local_part(view, at)
        if local and local.lower() not in _MACHINE_ACCOUNTS and match[1].lower() not in _NOT_HOSTS_IN_PROMPTS:
            yield Span(at - len(local), at, "user")
            yield Span(*match.span(1), "host")


def _find_dotted(view: bytes, *, strict: bool) -> Iterator[Span]:
    done = 0
    for dot in _DOT.finditer(view):
        if view[dot.start() + 1 : dot.start() + 2].isdigit():
            quad = _IPV4.search(view, max(0, dot.start() - 4), dot.end())
            if (
                quad
                and quad.start() >= done
                and _is_private_ipv4(quad[0], view[max(0, quad.start() - 12) : quad.start()], strict=strict)
            ):
                done = quad.end()
                yield Span(*quad.span(), "ip")
            continue
        name = _match_before(view, dot.start(), _NAME_BACKWARDS, 200)
        start = dot.start() - len(name)
        host = view[start : dot.end()].lower()
        preceding = view[max(0, start - 1) : start]
        if (
            name
            and preceding not in {b".", b"_", b"$", b"\\"}
            and host not in _KNOWN_HOSTS
            and name.split(b".")[-1].lower() not in _NOT_HOSTS
        ):
            yield Span(start, dot.end(), "host")


def _is_private_ipv4(quad: bytes, before: bytes, *, strict: bool) -> bool:
    """Whether four numbers are an IP address that identifies a machine, and not a version."""
    if _VERSION_BEFORE.search(before):
        return False
    address = ipaddress.ip_address(quad.decode())
    return strict or not any(address in network for network in _PUBLIC_NETWORKS if network.version == 4)  # noqa: PLR2004 - IPv4


def _find_ipv6(view: bytes, *, strict: bool) -> Iterator[Span]:
    done = 0
    for colons in _COLONS.finditer(view):
        match = _IPV6.search(view, max(done, colons.start() - 5), colons.end() + 45)
        if match is None or not match.start() <= colons.start() < match.end():
            continue
        done = match.end()
        try:
            address = ipaddress.ip_address(match[0].decode())
        except ValueError:
            continue
        if not strict and any(address in network for network in _PUBLIC_NETWORKS if network.version == 6):  # noqa: PLR2004 - IPv6
            continue
        text = match[0]
        # `a::b` is a name in many languages, and `12:34:56` a time.
        if text.count(b":") > 2 and any(49 <= byte <= 57 for byte in text):  # noqa: PLR2004 - a digit is in each of them
            yield Span(*match.span(), "ip")


_USER_NAME = rb"([A-Za-z0-9_][A-Za-z0-9_.-]{0,63})"
_HOME_PATTERNS = (
    (gate(rb"/(?:home|Users)/[A-Za-z0-9_]"), compile_lazily(rb"/(?:home|Users)/" + _USER_NAME)),
    (
        gate(rb"Users\\"),
        compile_lazily(
            rb"Users\\{1,4}([A-Za-z0-9_][^\\/:*?\"<>|\r\n\x00-\x1f]{0,63}(?=\\)|[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})"
        ),
    ),
)
_PROJECT_FOLDER_GATE = gate(rb"-(?:home|Users)-[A-Za-z0-9]")
_PROJECT_FOLDER = compile_lazily(rb"-(?:home|Users)-([A-Za-z0-9]{1,64})(?=-|[\"'/\\\s]|\Z)")
# After one of these bytes a slash starts a path, and nothing else must be checked.
_BEFORE_PATH = frozenset(b" \t\n\"'`(=:,;[<>|")
_SLASH = ord("/")
_DRIVE = compile_lazily(rb"(?i)[a-z]:(?:\\{1,4}|/)\Z")
_MOUNT = compile_lazily(rb"(?:/mnt|/cygdrive|)/[a-z]\Z|/var\Z|/export\Z|/System/Volumes/Data\Z|file://\Z")
_COMMON_ACCOUNTS = word_set(
    "user users username user_name name you your yourname your-name me root admin administrator ubuntu debian node app"
    " apps runner vscode codespace shared public default guest dev developer test tests tester testuser test-user"
    " example someone somebody foo bar home work build ci jenkins git main data code src project projects claude docker"
    " ec2-user vagrant pi will may can .shared all any local new old www web server service system bin lib"
    " opt tmp var etc dir path folder myuser demo nobody daemon postgres mysql redis nginx apache www-data mail backup"
    " sshd ftp operator mongodb elasticsearch rabbitmq grafana prometheus deploy deployer ansible circleci travis"
    " buildkite gitlab-runner github-actions actions airflow jovyan opc centos fedora rocky admin1 staff wheel sudo"
)
# First names that are ordinary words. As names they would be redacted in every sentence.
_WORD_NAMES = word_set(
    "april art ash august autumn bill bishop blue brook brooks buck bud buddy case cash chance chase chip clay cliff"
    " crystal daisy dash dawn dean drew dusty faith fern forest frank gene grace grant guy harmony hazel heather holly"
    " hope hunter iris ivy jade jasmine jewel joy june king lane lily mark max melody mercy miles misty norm olive page"
    " pat pearl penny poppy ray red reed rich river robin rose ruby rusty sage sandy scarlet scout serenity sky spike"
    " star sterling summer sunny tiger trip violet ward wolf wood woody"
)
# The beginning of `user` before an ellipsis, where a line was cut. Characters that are not ASCII are question marks.
_CUT_USER = compile_lazily(rb"(?i)us?e?\?")
GENERIC_USER_NAMES = _COMMON_ACCOUNTS | _WORD_NAMES
"""Account names that are not redacted in every text: common accounts, and words."""
# Words that are also first names. Their home directories may belong to a person.
_AMBIGUOUS_NAMES = word_set("will may can pi me dev work code data main app web new old") | _WORD_NAMES
_GENERIC_HOMES = GENERIC_USER_NAMES - _AMBIGUOUS_NAMES


@lru_cache(maxsize=1024)
def _read_account(name: bytes) -> tuple[str, bool]:
    """The account name of a home directory, and whether it identifies nobody."""
    account = name.rstrip(b".- ").decode("latin-1")
    return account, account.lower() in _GENERIC_HOMES


def _find_homes(view: bytes, gates: Collection[int], *, strict: bool) -> Iterator[Span]:
    """Find home directories, with the user name as value, and user names in names of project folders.

    A home directory that says `user` or `runner` identifies nobody.
    """
    for home_gate, pattern in _HOME_PATTERNS:
        for match in pattern.finditer(view) if home_gate in gates else ():
            name, is_generic = _read_account(match[1])
            first, end = match.span(1)
            if (
                not name
                or (is_generic and not strict)
                or (view[end : end + 1] == b"?" and _CUT_USER.match(view, first) is not None)
            ):
                continue
            start = _path_start(view, match.start())
            if start is not None:
                yield Span(start, first + len(name), "home", value=name)
    for match in _PROJECT_FOLDER.finditer(view) if _PROJECT_FOLDER_GATE in gates else ():
        if strict or match[1].decode().lower() not in _GENERIC_HOMES:
            yield Span(*match.span(1), "user")


_LOGIN = rb"([A-Za-z_][A-Za-z0-9_.-]{1,31})"
_END = rb"(?![A-Za-z0-9_(<{$-])"
_VALUE = rb"=[\"']?" + _LOGIN + _END
_BLAME_DATE = rb" {1,40}[12][0-9]{3}-[0-9]{2}-[0-9]{2} [0-9:]{8} [+-][01][0-9]{3} {1,8}[0-9]{1,7}\)"
# The gate, a literal, how far before it a match may start, and the pattern with the name in its group. A search for a
# literal is many times faster than one for a pattern, and each is searched for once.
_LOGIN_RULES = (
    (rb"USER=", b"USER=", 5, "user", compile_lazily(rb"\b(?:SUDO_)?USER" + _VALUE)),
    (
        *(rb"(?:LOG|USER|AUTHOR_|COMMITTER_)NAME=", b"NAME=", 11, "user"),
        compile_lazily(rb"\b(?:LOG|USER|GIT_AUTHOR_|GIT_COMMITTER_)NAME" + _VALUE),
    ),
    (rb"HOSTNAME=", b"HOSTNAME=", 0, "host", compile_lazily(rb"HOSTNAME" + _VALUE)),
    (rb"COMPUTERNAME=", b"COMPUTERNAME=", 0, "host", compile_lazily(rb"COMPUTERNAME" + _VALUE)),
    (rb"uid=[0-9]+\(", b"uid=", 0, "user", compile_lazily(rb"uid=[0-9]{3,10}\(" + _LOGIN + rb"\)")),
    # A line of /etc/passwd of a person. Accounts of the system have smaller numbers.
    (
        *(rb":x:1[0-9]+:[0-9]+:", b":x:1", 33, "user"),
        compile_lazily(rb"(?:\A|(?<=[\n\t ])|(?<=\\n))" + _LOGIN + rb":x:1[0-9]{3,8}:[0-9]{1,10}:"),
    ),
    (rb"sudo -u ", b"sudo -u ", 0, "user", compile_lazily(rb"sudo -u " + _LOGIN + _END)),
    (
        *(rb"useradd ", b"useradd ", 0, "user"),
        compile_lazily(rb"useradd(?: -{1,2}[a-z-]+(?:[ =][^\s-]\S*)?){0,6} " + _LOGIN + rb"(?=\s|\\|\Z)"),
    ),
    # The owner of a file in `ls -l`, which lists at least one directory or program of the same owner.
    (
        *(rb"[dl-]rwxr[w-][xsStT-][r-][w-][xsStT-][@+.]? +[0-9]+ +[A-Za-z_]", b"rwxr", 1, "user"),
        compile_lazily(rb"[dl-]rwx(?:[r-][w-][xsStT-]){2}[@+.]? {1,6}[0-9]{1,6} {1,4}" + _LOGIN + rb"(?= )"),
    ),
    (rb"ostname: ", b"ostname: ", 8, "host", compile_lazily(rb"\b(?:Static )?[Hh]ostname: {1,24}" + _LOGIN + _END)),
    # `uname -a`.
    (
        *(rb"Linux [A-Za-z0-9.-]+ [0-9]+\.[0-9]+\.[0-9]", b" #", 120, "host"),
        compile_lazily(rb"\bLinux ([A-Za-z0-9][A-Za-z0-9.-]{1,62}) [0-9]{1,2}\.[0-9]{1,3}\.[0-9]\S{0,40} #[0-9]"),
    ),
    (
        *(rb"user\.name ", b"user.name ", 0, "name"),
        compile_lazily(rb"user\.name \\{0,2}[\"']" + _FULL_NAME + rb"\\{0,2}[\"']"),
    ),
    # The full name in a line of /etc/passwd, and the author of a line in `git blame`.
    (
        *(rb":x:1[0-9]+:[0-9]+:[A-Za-z?]", b":x:1", 0, "name"),
        compile_lazily(rb":x:1[0-9]{3,8}:[0-9]{1,10}:" + _FULL_NAME + rb",{0,4}:/"),
    ),
    *(
        (
            *(rb" [+-][01][0-9]{3} +[0-9]+\)", offset, 110, "name"),
            compile_lazily(rb"\(" + _FULL_NAME + _BLAME_DATE),
        )
        for offset in (b" +0", b" -0", b" +1", b" -1")
    ),
)
_LOGIN_GATES = tuple(gate(pattern) for pattern, *_rest in _LOGIN_RULES)
_LOGIN_REACH = 160


def _find_logins(view: bytes, gates: Collection[int]) -> Iterator[Span]:
    """Find account and machine names in variables and in the output of programs."""
    for login_gate, (_gate, literal, before, kind, pattern) in zip(_LOGIN_GATES, _LOGIN_RULES, strict=True):
        at = view.find(literal) if login_gate in gates else -1
        while at >= 0:
            match = pattern.search(view, max(0, at - before), at + _LOGIN_REACH)
            if match is not None and match.start() <= at:
                name = match[1].decode().lower()
                is_common = all(word in _COMMON_ACCOUNTS for word in name.split())  # `Test User`, too
                if not is_common and not name.startswith(("systemd", "_", "local")):
                    yield Span(*match.span(1), kind)
            at = view.find(literal, at + len(literal))


_STRICT_PATTERNS = (
    ("path", compile_lazily(rb"(?<![\w./:<>~-])(?:~|\.{1,2})?(?:/[A-Za-z0-9_.@+?-]{1,128}){2,64}")),
    ("path", compile_lazily(rb"(?<![A-Za-z0-9])[A-Za-z]:(?:\\{1,2}[^\\/:*?\"<>|\r\n\x00-\x1f]{1,128}){1,64}")),
    ("url", compile_lazily(rb"\b[a-z][a-z0-9+]{1,9}://[^\s\"'`<>\\)\]}]{3,2048}")),
    (
        "mac",
        compile_lazily(
            rb"(?<![0-9A-Fa-f:-])[0-9A-Fa-f]{2}(?:([:-])[0-9A-Fa-f]{2}(?:\1[0-9A-Fa-f]{2}){4})(?![0-9A-Fa-f:-])"
        ),
    ),
    ("phone", compile_lazily(rb"(?<![\w+.-])\+[1-9][0-9]{0,2}(?:[ ().-]{0,3}[0-9]){6,12}(?![\w.])")),
)


def _find_strictly(view: bytes) -> Iterator[Span]:
    """Find every path, URL, hardware address and telephone number."""
    for kind, pattern in _STRICT_PATTERNS:
        yield from (Span(*match.span(), kind) for match in pattern.finditer(view))


def _path_start(view: bytes, at: int) -> int | None:
    """The start of a path with a home directory at `at`; None if it is only a folder with that name."""
    if at and view[at - 1] in _BEFORE_PATH and view[at] == _SLASH:
        return at
    before = view[max(0, at - 24) : at]
    if view[at : at + 1] == b"U":
        drive = _DRIVE.search(before)
        return at - len(drive[0]) if drive else None
    mount = _MOUNT.search(before)
    if mount and not mount[0].startswith(b"file"):
        return at - len(mount[0])
    last = before[-1:]
    if (before[-2:-1] == b"\\" and last in b"nrt" and last) or before[-6:-4] == b"\\u":
        return at
    return None if last.isalnum() or (last in {b".", b"_", b"-", b"~", b"}", b"*", b"?"} and last) else at
