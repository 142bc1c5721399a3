"""Find passwords among the arguments of common programs and functions, where only the position or a letter says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from threadline.redact.rules import heuristics, prefilter
from threadline.redact.rules.contexts import find_piped_value, literal_span, word_span
from threadline.redact.rules.formats import Span
from threadline.redact.rules.heuristics import is_distinctive
from threadline.redact.rules.patterns import compile_lazily, trie_pattern
from threadline.redact.rules.prefilter import RareMarks, gate, match_at_places, match_at_sign

# Options of one or two letters, with a value that follows or is attached. The program precedes them on its line.
_SEPARATE_OPTION = compile_lazily(rb"-(?<=[ \t]-)([a-zA-Z]{1,2})[ \t=:]{1,2}(\\*[\"'])?([^\s\"'\\]{3,256})")
_ATTACHED_OPTION = compile_lazily(rb"-(?<=[ \t]-)(hp|[a-zA-Z])(\\*[\"'])?([^\s\"'\\=:-][^\s\"'\\]{2,256})")
_LOGIN_OPTION = compile_lazily(rb"-(?<=[ \t]-)([a-zA-Z])[ \t=]{0,2}\\*[\"']?([^\s\"']{2,256})")
_SEPARATE_PROGRAMS = {
    "p": "sshpass useradd usermod mongo mongosh mongodump mongorestore mongoexport mongoimport mongotop mongostat"
    " login psexec"
    " psexec64 rdesktop ncftp ncftpput ncftpget rabbitmqadmin az cqlsh influx beeline crackmapexec netexec nxc"
    " evil-winrm"
    " hydra medusa twine security winrs gsutil kubeadm couchbase-cli nodetool sqlplus mssql-cli ncrack wmiexec pwsh"
    " vncviewer"
    " altool htdigest smbmap kcadm.sh kcadm asadmin neo4j-admin cypher-shell psftp freerdp proxychains arangosh"
    " arangodump certutil",
    "P": "zip unzip zipcloak sqlcmd bcp osql tsql isql ipmitool mosquitto_pub mosquitto_sub mosquitto_rr security"
    " ssh-keygen"
    " fcrackzip certutil pktool tftp sqsh freebcp defncopy wg-quick",
    "w": "ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami ldappasswd ldapmodrdn ldapcompare ldapexop kadmin"
    " security dsadd dsmod ipa-client-install ipa-server-install ipa-replica-install",
    "s": "ldappasswd",
    "a": "redis-cli ldappasswd valkey-cli keydb-cli",
    "A": "snmpwalk snmpget snmpset snmpbulkwalk snmpgetnext snmptrap",
    "X": "snmpwalk snmpget snmpset snmpbulkwalk snmpgetnext snmptrap",
    "c": "snmpwalk snmpget snmpset snmpbulkwalk snmpbulkget snmpgetnext snmptable snmptrap onesixtyone",
    "k": "openssl nuget",
    "K": "openssl",
    "N": "ssh-keygen",
    "pw": "plink pscp psftp puttygen kitty addprinc cpw kadmin kadmin.local",
    "rp": "schtasks",
    "ap": "swaks",
}
_ATTACHED_PROGRAMS = {
    "p": "sshpass mysql mysqldump mysqladmin mysqlimport mysqlshow mysqlcheck mysqlbinlog mysqlpump mysqlsh"
    " mysqlslap mariadb"
    " mariadb-dump mariadb-admin mycli xtrabackup mysqlhotcopy 7z 7za 7zr 7zz rar unrar",
    "hp": "rar",
    "P": "sqlcmd bcp osql isql",
    "U": "",
}
# Options with a login: a name, a sign and the password.
_LOGIN_PROGRAMS = {
    "U": (b"%", "smbclient rpcclient net winexe smbget smbtree smbcacls smbcquotas wmic nmblookup pth-winexe cifsdd"),
    "u": (b",", "lftp"),
    "E": (b":", "curl"),
    "a": (b":", "http https xh xhs httpie ab hey"),
    "b": (b"=", "curl wget"),
}


class _Programs(NamedTuple):
    """Patterns of the names of programs: at the start of a command, and anywhere, which is a quick check."""

    first: re.Pattern[bytes]
    anywhere: re.Pattern[bytes]


def _program_pattern(programs: str) -> _Programs:
    names = rb"(?:" + trie_pattern(name.encode() for name in programs.split()) + rb")(?:\.exe)?(?=[\s\"'])"
    return _Programs(compile_lazily(rb"(?:\A|[\s/\"'`(\\$>{&])" + names), compile_lazily(names))


_SEPARATE = {letter.encode(): _program_pattern(names) for letter, names in _SEPARATE_PROGRAMS.items()}
_ATTACHED = {letter.encode(): _program_pattern(names) for letter, names in _ATTACHED_PROGRAMS.items() if names}
_LOGINS = {letter.encode(): (sign, _program_pattern(names)) for letter, (sign, names) in _LOGIN_PROGRAMS.items()}
# Options whose value may follow without a blank, and the first two bytes of all others.
_ATTACHED_LETTERS = frozenset(letters[:1] for letters in (*_ATTACHED, b"u", b"U"))
_OPTION_STARTS = frozenset(
    (letters + bytes((sign,)))[:2] for letters in (*_SEPARATE, *_ATTACHED, *_LOGINS) for sign in b" \t=:\"'\\"
)
_COMMAND_REACH = 300
_BACKSLASH = 0x5C
_COMMAND_START = compile_lazily(rb"(?<!\\)\r?\n|(?<!\\)\\n|[|;]|&&")
_PLACEHOLDER_ARGUMENT = compile_lazily(rb"[A-Z_]+\Z|[<\[{$(-]|/dev/|\d{1,5}\Z")


def find_command_passwords(view: bytes, lower: bytes, marks: RareMarks) -> Iterator[Span]:
    """Find passwords that are passed to commands; `marks` are the rare marks of the view."""
    for at in marks.options:
        # Most dashes are those of other options, which two bytes show.
        following = view[at + 1 : at + 3]
        if following[:1] in _ATTACHED_LETTERS or following in _OPTION_STARTS:
            span = _option_password(view, at)
            if span is not None:
                yield span
    if marks.places:
        yield from _find_by_words(view, lower, marks)
    yield from _find_rare_forms(view, lower, marks)
    yield from _find_recovery_codes(lower, marks)
    has_pgpass = _PGPASS_GATE in marks.gates and any(pattern.search(view) for pattern in _PGPASS_LINE)
    for match in _PGPASS.finditer(view) if has_pgpass else ():
        span = literal_span("password", match.start(1), match[1])
        if span is not None:
            yield span
    for match in match_at_sign(_HASH, b"$", view) if _HASH_GATE in marks.gates else ():
        if match.end() - match.start() >= _MIN_HASH:
            yield Span(*match.span(), "password-hash")


# Lists of codes below a heading such as `Recovery codes:`.
_RECOVERY_CODES = b"recovery codes"
_RECOVERY_GATE = gate(rb"(?i)" + _RECOVERY_CODES)
_CODES_HEADING = compile_lazily(rb"codes\b[^\n\\]{0,60}?(?:[:*#`\[{(\"]|(?=\r?\n|\\n)|\Z)")
_CODE = compile_lazily(
    rb"(?:[\s,;*`\"'|>\[-]|\\+[nrt]|[0-9]{1,2}[.)][ \t]){1,40}"
    rb"([a-z0-9]{4,6}(?:-[a-z0-9]{4,6}){1,4}|[0-9]{4}[ ][0-9]{4}|[0-9]{8,10}|[a-z0-9]{8,12})(?![\w-])"
)
_DIGIT = compile_lazily(rb"[0-9]")
_MAX_HEADINGS = 64
_MAX_CODES = 40


def _find_recovery_codes(lower: bytes, marks: RareMarks) -> Iterator[Span]:
    """Find the codes that replace a second factor: at least two, each with a digit, below a heading."""
    places = [at + len(b"backup ") for at in marks.places_of(prefilter.BACKUP_CODES)[:_MAX_HEADINGS]]
    at = lower.find(_RECOVERY_CODES) if _RECOVERY_GATE in marks.gates else -1
    while at >= 0 and len(places) < 2 * _MAX_HEADINGS:
        places.append(at + len(b"recovery "))
        at = lower.find(_RECOVERY_CODES, at + len(_RECOVERY_CODES))
    for heading in match_at_places(_CODES_HEADING, lower, sorted(places)):
        codes: list[re.Match[bytes]] = []
        end = heading.end()
        while len(codes) < _MAX_CODES and (code := _CODE.match(lower, end)):
            codes.append(code)
            end = code.end()
        with_digit = [code for code in codes if _DIGIT.search(code[1])]
        if len(with_digit) > 1 and len(with_digit) * 2 >= len(codes):
            yield from (
                Span(*code.span(1), "password", local_only=not is_distinctive(code[1].decode())) for code in codes
            )


def _option_password(view: bytes, at: int) -> Span | None:
    for pattern, programs in ((_SEPARATE_OPTION, _SEPARATE), (_ATTACHED_OPTION, _ATTACHED)):
        match = pattern.match(view, at)
        if match is None:
            continue
        letters = match[1]
        program = programs.get(letters)
        if program is not None and _is_run_by(view, at, program):
            return _argument_span(match)
    login = _LOGIN_OPTION.match(view, at)
    known = _LOGINS.get(login[1]) if login else None
    if login is None or known is None or known[0] not in login[2] or not _is_run_by(view, at, known[1]):
        return None
    start = login.start(2) + login[2].index(known[0]) + 1
    quoted = _QUOTED_ARGUMENT.match(view, start)
    if quoted is not None:
        return literal_span("password", quoted.start(1), quoted[1])
    return word_span("password", start, view[start : login.end(2)])


def _is_run_by(view: bytes, at: int, programs: _Programs) -> bool:
    """Whether one of the programs starts the command that has an option at this position."""
    floor = max(0, at - _COMMAND_REACH)
    begin = max(floor, view.rfind(b"|", floor, at), view.rfind(b";", floor, at))
    for line_end in (b"\n", b"\\n"):
        end = view.rfind(line_end, begin, at)
        if end >= 0 and view[end - 1] != _BACKSLASH:
            begin = end
    if programs.anywhere.search(view, begin, at) is None:
        return False
    program = programs.first
    starts = [separator.end() for separator in _COMMAND_START.finditer(view, floor, at)]
    # A copy starts with the command: the pattern does not know the separator before it.
    return (program.search(view[starts[-1] : at]) if starts else program.search(view, floor, at)) is not None


_PROSE_WORD = compile_lazily(rb"[a-z]{3,5}\Z")


_CLOSING_TAG = compile_lazily(rb"</[a-z-]{1,40}>\Z")  # of `<bash-input>` and the like


def _argument_span(match: re.Match[bytes]) -> Span | None:
    value = _CLOSING_TAG.sub(b"", match[3])
    if not match[2] and (_PLACEHOLDER_ARGUMENT.match(value) or _PROSE_WORD.match(value)):
        return None
    return literal_span("password", match.start(3), value)


# Programs and files that a rare word announces. Each pattern starts at that word, in lower case.
_QUOTED = rb"\\*[\"']([^\s\"'\\]{4,128})\\*[\"']"
_WORD_BEFORE_HOST = rb"\\*[\"']?([^\s@\"'\\]{4,128})\\*[\"']?@"
_QUOTED_ARGUMENT = compile_lazily(_QUOTED)
_WORD = rb"\\*[\"']?([^\s\"'\\|;&<>]{4,128})"
_BLANK = rb"[ \t]+"
_NAME = rb"[\w.@$#-]{1,64}"
_BREAK = rb"(?:\s|\\n)"
_IDENTIFIED = rb"by (?:password |values )?(?:" + _QUOTED + rb"|(?=[^\s0-9`]{0,64}[0-9])" + _WORD + rb")"
_SECURE_STRING = rb"-securestring (?:-string )?(?:-asplaintext )?(?:-force )?(?:-string )?" + _QUOTED
_ORACLE = (
    rb"(?:plus|pdp|bc:oracle:thin:)[ \t]*(?:-\S+[ \t]+){0,3}\\*[\"']?"
    + _NAME
    + rb"/([^\s\"'\\/@]{3,128})(?=[@\s\"'\\]|\Z)"
)
_EXPECT = (
    rb"pect[ (](?:[^\n]{0,80}|[^\n\\]{0,20}(?:\n|\\n)"
    + _BREAK
    + rb"{0,20}[^\n]{0,60})(?:assword|assphrase|asscode|pin)\b[^\n]{0,20}?"
    + _BREAK
) + (
    rb"{0,20}\{?"
    + _BREAK
    + rb"{0,40}(?:[\w.]{1,40}\.)?send(?:_user|line)?(?:[ \t]+(?:--[ \t]+)?|\(b?)\\*[\"']([^\s\"'\\]{4,128})"
    + rb"(?:\\+[rn]|\r|\n|\\*[\"']\))"
)
_NET_USER = rb"user[ \t]+(?:\\*\"[^\"\n]{1,40}\\*\"|[\w.\\-]{1,64})[ \t]+\\*\"?([^\s\"/\\*-][^\s\"\\]{3,128})"
_NET_USE = (
    rb"use[ \t][^\n]{0,120}?(?:\\\\[\w.$-]{1,64}(?:\\+[\w.$-]{1,64}){1,3}[ \t]+|/user:[\w.\\@-]{1,64}[ \t]+)"
    rb"\\*\"?([^\s\"/\\*][^\s\"\\]{3,128})"
)
_ADD_USER = rb"(?:bbitmqctl(?:[ \t]+-\S+)* (?:add_user|authenticate_user)|ba-tool user (?:create|add|setpassword))" + (
    _BLANK + rb"\\*[\"']?" + _NAME + rb"\\*[\"']?" + _BLANK + _WORD
)
_BCRYPT = rb"bcrypt\w{0,12}[.:]{1,2}(?:hash|hashpw|hashsync|compare|comparesync|checkpw|hashpassword)\([bn]?" + _QUOTED
_PGP_SYM = rb"pgp_sym_(?:en|de)crypt\w{0,8}\([^()\n]{1,200}?,[ \t]{0,4}\\*'([^\s'\\]{4,128})\\*'"
# An argument of its own: `p:orange/p:blue` are colours.
_SLASH_P = rb"p:(?:(?<=[\s\"'`(]/p:)|(?<=\\[nrt]/p:)|(?<=\A/p:))\\*[\"']?([^\s\"'\\]{4,128})"
_WORD_PATTERNS = tuple(
    (words, compile_lazily(pattern))
    for words, pattern in (
        ((prefilter.IDENTIFIED_BY,), _IDENTIFIED),
        ((prefilter.SECURE_STRING,), _SECURE_STRING),
        (prefilter.ORACLE, _ORACLE),
        (prefilter.EXPECT, _EXPECT),
        ((prefilter.NET_USER,), _NET_USER),
        ((prefilter.NET_USE,), _NET_USE),
        ((prefilter.SLASH_P,), _SLASH_P),
        (prefilter.ADD_USER, _ADD_USER),
        ((prefilter.FROM_LITERAL,), rb"-literal[= ]\\*[\"']?[\w.-]{1,80}=" + _WORD),
        ((prefilter.PGP_SYM,), _PGP_SYM),
        ((prefilter.PRAGMA,), rb"pragma (?:re)?key[ \t]{0,4}=[ \t]{0,4}" + _QUOTED),
        ((prefilter.BCRYPT,), _BCRYPT),
        ((prefilter.PLAIN_SCHEME,), rb"plain\}(?<=[\w\"':= \t]\{plain\})([^\s\"'\\:]{4,128})"),
    )
)
# The same for words of everyday text, after which only what looks like a password is one.
_TEXT_PATTERNS = tuple(
    (words, compile_lazily(pattern))
    for words, pattern in (
        ((b"ult ",), rb"ult (?:login|encrypt_string|operator unseal)" + _BLANK + rb"(?:-\S+[ \t]+){0,2}" + _WORD),
        (
            (b"bscure ", b"unity ", b"uth "),
            rb"(?:bscure|unity|uth(?<![a-z]auth))" + _BLANK + rb"(?:" + _NAME + rb"[ \t]+)??" + _WORD,
        ),
        ((prefilter.BASIC,), rb"basic(?:auth \S{1,60}|\.[\w.-]{1,40})[ \t]+" + _NAME + _BLANK + _WORD),
    )
)
# Programs that read a password from their input.
_PIPED_WORDS = (prefilter.SUDO, prefilter.STDIN, prefilter.WITH_TOKEN, *prefilter.PIPED_TO, prefilter.CHPASSWD)
_CHPASSWD_LIST = compile_lazily(
    rb"passwd\b(?:[^\n\\]{0,60}<<-?[ \t]*\\*[\"']?\w{1,20}\\*[\"']?|:"
    + _BREAK
    + rb"{1,40}(?:expire:[^\n\\]{0,20}"
    + _BREAK
    + rb"{1,40})?(?:list|users):[ \t]*\|?)"
)
_CHPASSWD_LINE = compile_lazily(rb"(?:\r?\n|\\n)[ \t]{0,40}(?:-[ \t]+)?\\*[\"']?[a-z_][\w.-]{0,31}:([^\s\"'\\]{4,128})")
_VAULT_FIELDS = compile_lazily(
    rb"ult (?:kv put|write)[ \t]+[\w./-]{1,200}"
    rb"((?:[ \t]+[\w.-]{1,60}=(?:\\*[\"'][^\"'\n]{0,256}\\*[\"']|[^\s\"'|;&]{1,256})){1,20})"
)
_STORED_FIELD = compile_lazily(rb"=\\*[\"']?([^\s\"'\\]{4,256})")
_JWK_FIELD = compile_lazily(
    rb"\"(?:d|k|p|q|dp|dq|qi)\\*\"" + _BREAK + rb"{0,20}:" + _BREAK + rb"{0,20}\\*\"([A-Za-z0-9_-]{10,4096})\\*\""
)
_OBJECT_VALUE = compile_lazily(
    rb"\"[vV]alue\\*\"" + _BREAK + rb"{0,20}:" + _BREAK + rb"{0,20}\\*\"([^\s\"\\]{6,4096})\\*\""
)
_OBJECT_REACH = 2048
_COOKIE_JAR = compile_lazily(
    rb"(?:#HttpOnly_)?[\w.-]{3,253}(?:\t|\\t)(?:TRUE|FALSE)(?:\t|\\t)/[^\s\\]{0,200}(?:\t|\\t)(?:TRUE|FALSE)(?:\t|\\t)[0-9]{1,12}(?:\t|\\t)[^\s\\]{1,128}(?:\t|\\t)([^\s\\\"]{4,4096})"
)
_COOKIE_JAR_REACH = 280
_MAX_COOKIE = 4800
# A search for a few signs is faster than one for a whole line.
_PGPASS_LINE = (compile_lazily(rb"5(?:43[0-9]:)(?<=:543.:)"), compile_lazily(rb"\*(?::)(?<=:\*:)"))
_PGPASS_GATE = gate(rb":543[0-9]:|:\*:")
_PGPASS = compile_lazily(
    rb"(?<![\w.*/:-])(?:\*|[\w.-]{1,253}):(?:\*|[0-9]{2,5}):[\w*-]{1,64}:[\w.*@-]{1,64}:([^\s'\"\\:]{4,128})(?=\s|\\n|\\?\"|\Z)"
)
_HASH = compile_lazily(
    rb"\${1,2}(?:apr1|1|5|6|y|2[abxy]|argon2(?:id|i|d))\${1,2}(?:[\w=,./+]{1,64}\${1,2}){0,3}[\w./+]{16,128}"
)
_HASH_GATE = gate(rb"\$(?:apr1|1|5|6|y|2[abxy]|argon2(?:id|i|d))\$")
_MIN_HASH = 28


# Commands, calls and URLs that few texts contain. Each pattern has a group with the secret, in lower case.
_RARE_FORMS = tuple(
    (words, gate(b"(?i)" + b"|".join(map(re.escape, words))), compile_lazily(pattern), name)
    for words, pattern, name in (
        # Logins by position.
        ((b"bw unlock ", b"masterauth "), rb"(?:bw unlock|masterauth)" + _BLANK + _WORD, "password"),
        ((b"isql ",), rb"isql(?<![\w-]isql)" + _BLANK + _NAME + _BLANK + _NAME + _BLANK + _WORD, "password"),
        ((b".logon ",), rb"\.logon" + _BLANK + rb"[\w./-]{1,80},([^\s;\"'\\]{4,128})", "password"),
        (
            (b"signtool ", b"ktpass ", b"schtasks "),
            rb"(?:signtool|ktpass|schtasks) [^\n|;]{0,200}?[ \t]/r?p(?:ass(?:word)?)?" + _BLANK + _WORD,
            "password",
        ),
        ((b"@tcp(", b"@unix("), rb"(?<=:)([^\s:@/\"'\\]{4,128})@(?:tcp|unix)\(", "password"),
        (
            (b".py ",),
            rb"\.py[ \t]+\\*[\"']?(?:[\w.-]{1,64}/)?[\w.$-]{1,64}:([^\s@\"'\\]{4,128})@",
            "password",
        ),
        (
            (b"impacket-",),
            rb"impacket-[a-z]{2,24}[ \t]+(?:-\S+[ \t]+){0,4}\\*[\"']?(?:[\w.-]{1,64}/)?[\w.$-]{1,64}:"
            + _WORD_BEFORE_HOST,
            "password",
        ),
        (
            (b"mc alias set ", b"mc config host add "),
            rb"mc (?:alias set|config host add)"
            + _BLANK
            + _NAME
            + _BLANK
            + rb"\S{1,200}"
            + _BLANK
            + rb"\\*[\"']?"
            + _NAME
            + rb"\\*[\"']?"
            + _BLANK
            + _WORD,
            "password",
        ),
        (
            (b"rclone config ",),
            rb"rclone config (?:create|update|password)\b[^\n|;]{0,200}?[ \t](?:pass|password2?|secret_access_key)"
            rb"[ \t=]+" + _WORD,
            "password",
        ),
        (
            (b"put-parameter ", b"keyvault secret set "),
            rb"(?:keyvault secret set|put-parameter(?=[^\n|;]{0,400}securestring)) [^\n|;]{0,400}?--value[= ]" + _WORD,
            "password",
        ),
        (
            (b"--password-command", b"--password-file=<(", b"--passphrase-file <("),
            rb"--pass(?:word|phrase)-(?:command|file)[= ]\\*[\"'<(]{0,3}echo (?:-n )?" + _WORD,
            "password",
        ),
        ((b"doctl ",), rb"doctl (?:\S{1,60} ){0,4}?-t[ =]" + _WORD, "password"),
        ((b"x11vnc ",), rb"x11vnc [^\n|;]{0,200}?-passwd " + _WORD, "password"),
        (
            (b"oathtool ",),
            rb"oathtool(?:[ \t]+-[^\s|;]+){1,8}[ \t]+\\*[\"']?([a-z2-7]{16,128}=*|[0-9a-f]{20,128})(?![\w-])",
            "password",
        ),
        # The key of a second factor, in groups of four.
        (
            (b"setup key", b"totp", b"authenticator", b"manual entry"),
            (
                rb"(?:setup key|totp|authenticator|manual entry)[^\n]{0,60}?[ \t:`\"']"
                rb"((?:[a-z2-7]{4}[ -]){3,15}[a-z2-7]{4})(?![\w-])"
            ),
            "password",
        ),
        (
            (b"login ", b"login: "),
            rb"login(?: as| with|:)?[ \t]+`?[\w.+-]{1,64}(?:@[\w.-]{1,100})?`?[ \t]+/[ \t]+`?([^\s`\"'\\]{6,128})",
            "word",
        ),
        ((b"qpdf ",), rb"qpdf [^\n|;]{0,200}?--encrypt " + _WORD, "password"),
        ((b"qpdf ",), rb"qpdf [^\n|;]{0,200}?--encrypt \S{1,128} " + _WORD, "password"),
        ((b"add-mask::",), rb"::add-mask::" + _WORD, "password"),
        ((b"password from ",), rb"password from \S{1,128} to `?" + _WORD, "word"),
        ((b"set password from ",), rb"set password from \S{1,128} to " + _QUOTED, "password"),
        ((b" on >",), rb"user [\w.@-]{1,64} (?:[\w+@~*&-]{1,40} ){0,4}?on >([^\s\"'\\]{4,128})", "password"),
        ((b"@http://", b"@https://"), rb"(?<![\w/:.-])[\w.-]{1,64}:([^\s:@/\"'\\]{4,128})@https?://", "password"),
        # Keys of functions that sign or encrypt, and URLs that work without any other key.
        (
            (b"hmac.new(", b"createhmac(", b"fernet("),
            rb"(?:hmac\.new|fernet|createhmac\(\\*[\"'][\w-]{1,20}\\*[\"'],[ \t]{0,4})\(?b?" + _QUOTED,
            "secret_key",
        ),
        (
            (b"jwt.encode(", b"jwt.decode(", b"jwt.sign(", b"jwt.verify("),
            rb"jwt\.(?:encode|decode|sign|verify)\((?:\{[^{}]{0,300}\}|[^(){}\n,]{1,100}),[ \t]{0,4}b?" + _QUOTED,
            "secret_key",
        ),
        (
            (b'"jwt',),
            rb"\"jwt[\w-]{0,24}\\*\"\s{0,8}:\s{0,8}\{[^{}]{0,300}?\"(?:signing)?key\\*\"\s{0,8}:\s{0,8}" + _QUOTED,
            "secret_key",
        ),
        ((b"rtmp://", b"rtmps://"), rb"rtmps?://[^\s\"'/]{1,100}/[\w-]{1,40}/([\w-]{12,128})(?![\w/])", "secret_key"),
        (
            (b"/magic", b"/reset", b"/invite", b"/verify", b"/confirm", b"/activat"),
            rb"/(?:magic|reset|invite|verify|confirm|activat)[a-z-]{0,24}/([\w-]{20,256})(?![\w/.])",
            "secret_key",
        ),
        # Logins by position, of constructors and of files for mail servers.
        (
            (b"new pdo(", b"new mysqli("),
            rb"new (?:pdo|mysqli)\([^,\n]{1,200},[ \t]{0,4}[^,\n]{1,80},[ \t]{0,4}" + _QUOTED,
            "password",
        ),
        # An app password of four groups, as Google shows it.
        (
            (b".login(",),
            rb"\.login\([^,\n]{1,100},[ \t]{0,4}\\*[\"']([a-z]{4} [a-z]{4} [a-z]{4} [a-z]{4})\\*[\"']\)",
            "groups",
        ),
        (
            (b", password = ", b", passwd = ", b", pwd = ", b", pw = "),
            rb", (?:password|passwd|pwd|pw) = (?:\\*[\"'][^\"'\n]{0,80}[\"']|[\w.]{1,60}),[ \t]{0,4}" + _QUOTED,
            "password",
        ),
        (
            (b"secretstring::", b"secret::new(", b"secretbox::"),
            rb"secret(?:string|box)?::(?:new|from)\([ \t]{0,4}" + _QUOTED,
            "password",
        ),
        ((b"gen_salt(",), rb"crypt\([ \t]{0,4}" + _QUOTED + rb"[ \t]{0,4},[ \t]{0,4}gen_salt\(", "password"),
        ((b"basic_auth(",), rb"basic_auth\([^,\n]{1,80},[ \t]{0,4}some\(" + _QUOTED, "password"),
        ((b"]:",), rb"\]:[0-9]{2,5}[ \t]{1,8}[\w.+-]{1,64}:([^\s\"'`\\]{4,128})", "word"),
        (
            (b"ftp ",),
            rb"ftp [^\n\\]{0,80}<<[^\n\\]{1,20}(?:\n|\\n)[ \t]{0,8}user \S{1,64} " + _WORD,
            "password",
        ),
        ((b"wifi:",), rb"wifi:(?:[tshr]:[^;\n]{0,64};){0,3}p:([^;\n]{4,64});", "password"),
        (
            (b"drush ",),
            rb"drush (?:-\S{1,60} ){0,3}?(?:user:password|user-password|upwd) \S{1,64} " + _WORD,
            "password",
        ),
        ((b"aescrypt ",), rb"aescrypt [^\n|;]{0,200}?-p[ =]?" + _WORD, "password"),
        # A number that opens something.
        (
            (b"pin is ", b"pin was ", b"pin code is ", b"pin number is "),
            rb"pin(?<![a-z_]pin)(?: code| number)? (?:is|was) ([0-9]{4,8})(?!\w)",
            "pin",
        ),
    )
)
# Commands that store secrets by name: `fly secrets set SESSION=…`.
_SETTERS = (b"secrets set ", b"secrets:set ", b"secret set ")
_SETTER_GATE = gate(rb"(?i)secrets?[ :]set ")
_SETTER = compile_lazily(
    rb"secrets?[ :]set(?:[ \t]+-[\w-]{1,40}(?:[= ][\w./-]{1,80})?){0,4}"
    rb"((?:[ \t]+\\*[\"']?[\w.-]{1,60}=(?:\\*[\"'][^\"'\n]{0,256}\\*[\"']|[^\s\"'|;&]{1,256})){1,20})"
)
# Programs that read a password from their input, in addition to those that a rare word announces.
_READERS = (
    rb"\|[ \t]*(?:sudo[ \t]+)?(secret-tool store|(?:go)?pass (?:insert|add)|op signin|bw (?:login|unlock)"
    rb"|realm join|passwd)\b"
)
_READERS_GATE = gate(rb"(?i)" + _READERS)
_READER = compile_lazily(_READERS)


def _find_rare_forms(view: bytes, lower: bytes, marks: RareMarks) -> Iterator[Span]:
    for words, form_gate, pattern, name in _RARE_FORMS:
        # Without RE2 all gates are open, and a search for words is faster than one for the pattern.
        for match in pattern.finditer(lower) if marks.may_contain(form_gate, words, lower) else ():
            start, end = match.span(match.lastindex or 0)
            value = view[start:end].rstrip(b"\"'`);,")
            if name in {"pin", "groups"}:
                yield Span(start, end, "password", local_only=name == "pin")
                continue
            if name == "word":
                span = word_span("password", start, value)
            else:
                span = literal_span(name, start, value) if name == "password" else word_span(name, start, value)
            if span is not None:
                yield span
    for match in _SETTER.finditer(lower) if marks.may_contain(_SETTER_GATE, _SETTERS, lower) else ():
        yield from _find_fields(view, match)
    for match in _READER.finditer(lower) if _READERS_GATE in marks.gates else ():
        span = find_piped_value(view, lower, match.start(1), "password")
        if span is not None:
            yield span


def _find_fields(view: bytes, match: re.Match[bytes]) -> Iterator[Span]:
    """The values of the fields `name=value` that a command stores."""
    for field in _STORED_FIELD.finditer(view, *match.span(1)):
        span = word_span("password", field.start(1), field[1])
        if span is not None:
            yield span


def _find_by_words(view: bytes, lower: bytes, marks: RareMarks) -> Iterator[Span]:
    for patterns, make_span in ((_WORD_PATTERNS, literal_span), (_TEXT_PATTERNS, word_span)):
        for words, pattern in patterns:
            for match in match_at_places(pattern, lower, marks.places_of(words)):
                start, end = match.span(match.lastindex or 0)
                span = make_span("password", start, view[start:end].rstrip(b"\"'`);"))
                if span is not None:
                    yield span
    for at in marks.places_of(_PIPED_WORDS):
        span = find_piped_value(view, lower, at, "password")
        if span is not None:
            yield span
    for match in match_at_places(_VAULT_FIELDS, view, marks.places_of((prefilter.VAULT,))):
        yield from _find_fields(view, match)
    yield from _find_in_objects(view, marks.places_of(prefilter.JWK), _JWK_FIELD, "private-key")
    yield from _find_in_objects(view, marks.places_of((prefilter.COOKIE_OBJECT,)), _OBJECT_VALUE, "cookie")
    yield from _find_chpasswd_lists(view, marks.places_of((prefilter.CHPASSWD,)))
    yield from _find_cookie_jar_lines(view, marks.places_of(prefilter.COOKIE_JAR))


def _find_in_objects(view: bytes, places: list[int], field: re.Pattern[bytes], kind: str) -> Iterator[Span]:
    """The fields of the JSON objects around these places."""
    done = 0
    for place in places:
        if place < done:
            continue
        floor = max(done, place - _OBJECT_REACH)
        begin = max(view.rfind(b"{", floor, place), floor)
        end = view.find(b"}", place, place + _OBJECT_REACH)
        done = end if end >= 0 else min(len(view), place + _OBJECT_REACH)
        for item in field.finditer(view, begin, done):
            value = item[1].decode("latin-1")
            if heuristics.is_literal(value) and not heuristics.is_example(value):
                yield Span(*item.span(1), kind, local_only=kind == "cookie" and not is_distinctive(value))


def _find_chpasswd_lists(view: bytes, places: list[int]) -> Iterator[Span]:
    """Find the lines `user:password` that follow `chpasswd` in cloud-init's configuration and in shell scripts."""
    for mark in match_at_places(_CHPASSWD_LIST, view, places):
        at = mark.end()
        while line := _CHPASSWD_LINE.match(view, at):
            at = line.end()
            span = literal_span("password", line.start(1), line[1])
            if span is not None:
                yield span


def _find_cookie_jar_lines(view: bytes, places: list[int]) -> Iterator[Span]:
    """Find the values in a cookie file of curl, wget or a browser."""
    done = 0
    for place in places:
        floor = max(done, place - _COOKIE_JAR_REACH)
        line, escaped = view.rfind(b"\n", floor, place), view.rfind(b"\\n", floor, place)
        begin = max(line + 1, escaped + 2 if escaped >= 0 else floor)
        # A line number may precede the line.
        match = _COOKIE_JAR.search(view, begin, min(len(view), place + _MAX_COOKIE)) if place >= done else None
        if match is not None:
            done = match.end()
            if heuristics.is_literal(match[1].decode("latin-1")):
                yield Span(*match.span(1), "cookie", local_only=not is_distinctive(match[1].decode("latin-1")))


# Calls: which string of the arguments is the password depends on the function.
_CALLS = compile_lazily(
    rb"\((?:(?<=tconnection\()|(?=[\\\"'n])(?:(?<=login\()|(?<=nnect\()|(?<=nection\()|(?<=ntial\()|(?<=tials\()|(?<=lient\()|(?<=mysqli\()|(?<=pdo\()"
    rb"|(?<=equelize\()|(?<=bind_s\()|(?<=superuser\()|(?<=_user\()|(?<=teuser\()|(?<=ftp\()|(?<=_driver\()|(?<=sign_in\()|(?<=signin\()|(?<=authenticate\()))"
)
_CALLS_GATE = gate(
    rb"(?i)tconnection\(|(?:login|nnect|nection|ntial|tials|lient|mysqli|pdo|equelize|bind_s|superuser|_user|teuser|ftp|_driver|sign_in|signin"
    rb"|authenticate)\([\\\"'n]"
)
_AUTH_CALL = compile_lazily(
    rb"uth[a-z_]{0,24}[ \t]{0,2}(?:[=:][ \t]{0,2}[\w.]{0,40})?[\(\[](?=[ \t]{0,2}[bru]?\\*[\"'])"
)
_ARGUMENTS = compile_lazily(
    rb"[ \t\n]{0,20}(?:[bru]?(\\*[\"'`])([^\"'`\\\r\n]{0,256})\1[\w.()]{0,30}|([\w.]{1,60}))[ \t\n]{0,20}(,|[\)\]])"
)
_HOST_FIRST = (b"nnect", b"nection", b"mysqli", b"pdo", b"ftp", b"_user", b"teuser", b"superuser", b"equelize")
_MAX_ARGUMENTS = 6


def find_call_passwords(view: bytes, lower: bytes, marks: RareMarks) -> Iterator[Span]:
    """Find passwords among the positional arguments of functions that log in or connect."""
    for match in _CALLS.finditer(lower) if _CALLS_GATE in marks.gates else ():
        span = _call_password(view, match.end(), host_first=lower.endswith(_HOST_FIRST, 0, match.start()))
        if span is not None:
            yield span
    places = marks.places_of((prefilter.AUTH,))
    for match in match_at_places(_AUTH_CALL, lower, places):
        span = _call_password(view, match.end(), host_first=False)
        if span is not None:
            yield span
    for match in match_at_places(_AUTH_LOGIN, lower, places):
        start, end = match.span(1)
        span = word_span("password", start, view[start:end])
        if span is None and view[end : end + 1] == b'"' and _DIGIT.search(view, start, end):
            span = literal_span("password", start, view[start:end])
        if span is not None:
            yield span


_AUTH_LOGIN = compile_lazily(
    rb"uth(?:entication)?(?:_users?)?\\*[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\*[\"']?[\w.@-]{1,64}:([^\s\"'\\/]{4,128})"
)


def _call_password(view: bytes, at: int, *, host_first: bool) -> Span | None:
    """The password among the arguments from `at` on: the second string, or the third after a host."""
    strings: list[tuple[int, bytes]] = []
    count = 0
    for _argument in range(_MAX_ARGUMENTS):
        match = _ARGUMENTS.match(view, at)
        if match is None:
            break
        count += 1
        if match[2] is not None:
            strings.append((match.start(2), match[2]))
        at = match.end()
        if match[4] != b",":
            break
    index = 2 if host_first and len(strings) > 2 else 1  # noqa: PLR2004 - host, name and password
    if len(strings) == 1 and count == 1 and not host_first:
        index = 0
    if index >= len(strings) or b" " in strings[index][1]:
        return None
    start, value = strings[index]
    return word_span("password", start, value)


PAIRED_KINDS = frozenset(("aws-access-key-id", "aws-temporary-key-id"))
"""Kinds of ids that are usually followed by their secret, which has no mark of its own."""
_PAIRED_SECRET = compile_lazily(rb"(?<![A-Za-z0-9/+=_-])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=_-])")
_PAIR_REACH = 240


def find_paired_secrets(view: bytes, key_id: Span) -> Iterator[Span]:
    """Find the secret key of AWS that precedes or follows its id, in the same line, in the next one or in a table."""
    begin, end = max(0, key_id.start - _PAIR_REACH), min(len(view), key_id.end + _PAIR_REACH)
    for match in _PAIRED_SECRET.finditer(view, begin, end):
        value = match[0].decode()
        if any(map(str.isdigit, value)) and any(map(str.isupper, value)) and any(map(str.islower, value)):
            yield Span(*match.span(), "aws-secret-key")
