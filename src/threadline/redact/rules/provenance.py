"""Find secrets by where they come from: the output of commands that print them, and the content of secret files.

`pass show db`, `echo $DB_PASSWORD` and `cat /run/secrets/db` print a value that no rule could recognise by itself. The
command tells what its output is. Error messages, prompts and the output of other commands in the same line are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import lru_cache
from itertools import pairwise, zip_longest

from msgspec import Struct

from threadline.redact.rules import heuristics
from threadline.redact.rules.formats import Span
from threadline.redact.rules.heuristics import is_env_key_name, is_secret_name, split_name, word_set
from threadline.redact.rules.patterns import compile_lazily
from threadline.redact.rules.tokens import find_lone_phrase
from threadline.shell_syntax import SUBSTITUTED, SimpleCommand, Word, parse_command, unwrap

KIND = "command-output"
"""The kind of a secret that is recognised by the command that printed it."""
_MAX_OUTPUT = 256 * 1024
_MAX_LINES = 4000
_MAX_STEPS = 64
_MAX_NESTING = 4
_MIN_VALUE = 4


class Output(Enum):
    """What a command prints."""

    VALUE = "a value on each line"
    FIRST = "a value on the first line, then named values"
    LAST = "a value on the last line, after a message"
    WORDS = "several values, separated by blanks"
    FIELDS = "named values; those with certain names are secret"
    DATA = "named values, all secret"
    CONTENT = "the content of a secret file: one value, or named values"
    PHRASE = "the seed phrase of a wallet, alone"


class Source(Struct, frozen=True):
    """What a command prints, and the names of secret fields in lower case."""

    output: Output
    fields: frozenset[str] = frozenset()


def _rule(pattern: str, output: Output, fields: str = "") -> tuple[re.Pattern[str], Source]:
    return compile_lazily(rf"(?:{pattern})"), Source(output, frozenset(fields.lower().split()))


_V, _F, _D, _C = Output.VALUE, Output.FIELDS, Output.DATA, Output.CONTENT
_AWS_KEYS = "secretaccesskey sessiontoken accesskeyid token"
_NO_SECRET = compile_lazily(r"(?:^| )(?:--help|-h|--version|help)(?: |$)|(?:^| )(?:-c|--clip|--copy|--quiet)(?: |$|=)")
# The arguments of a program after which it prints a secret. The first match decides. Arguments are joined by blanks.
_SOURCES: dict[str, tuple[tuple[re.Pattern[str], Source], ...]] = {
    "pass gopass passage prs": (
        _rule(r"^(?:generate|pwgen)\b", Output.LAST),
        _rule(r"^(?:show .*(?:-o|--password)\b|otp )", _V),
        _rule(
            r"^(?:show|cat)\b|^(?!(?:ls|list|find|search|grep|insert|add|edit|rm|remove|delete|mv|rename|cp|copy|git"
            r"|init|version|import|audit|update|open|close|sync|recipients|mounts|setup|config|fsck"
            r"|templates)\b)[^-\s]",
            Output.FIRST,
        ),
    ),
    "op": (
        _rule(r"^(?:read|connect token create|service-account create|user create)\b|^signin .*--raw", _V),
        _rule(r"^(?:item|get item) .*(?:--fields?[ =](?!.*(?:,|json))|--otp)", _V),
        _rule(
            r"^(?:item|get|document get|inject)\b", _F, "password credential value concealed secret notesplain token"
        ),
    ),
    "bw": (
        _rule(r"^get (?:password|totp|notes)|^generate|--raw", _V),
        _rule(r"^(?:get|list)\b", _F, "password totp value notes"),
    ),
    "rbw": (_rule(r"^get .*--full", _F, "password"), _rule(r"^(?:get|code|generate)\b", Output.FIRST)),
    "lpass": (
        _rule(r"^show .*(?:--password|--notes|--field[ =])", _V),
        _rule(r"^(?:show|export|generate)\b", _F, "password"),
    ),
    "keepassxc-cli kpcli": (
        _rule(r"^(?:generate|diceware)\b|^show .*-a (?i:pass)", _V),
        _rule(r"^show\b", _F, "password"),
    ),
    "security": (_rule(r"find-(?:generic|internet)-password .*-\w*w", _V), _rule(r"find-\w+-password", _F, "password")),
    "secret-tool": (_rule(r"^lookup\b", _V), _rule(r"^search\b", _F, "secret")),
    "keyring kwallet-query kwalletcli credstash akeyless conjur berglas blackbox_cat dcli enpasscli pass-cli": (
        _rule(r"^(?:.* )?(?:get|access|password|get-secret-value|variable get|-[a-z]*r)\b|^\S+\.gpg$", _V),
    ),
    "chezmoi": (_rule(r"^secret .*\bget\b", _V),),
    "cmdkey vaultcmd": (),
    "vault bao": (
        _rule(r"-field[ =]|^print token|-token-only|^token create .*-field", _V),
        _rule(r"^(?:read|kv get|kv patch|write|unwrap|list -detailed)\b", _D),
        _rule(r"^(?:token|login|operator)\b", _F, "token key unseal initial root"),
    ),
    "aws awslocal": (
        _rule(
            r"(?:ecr|ecr-public) get-login-password|rds generate-db-auth-token"
            r"|configure get (?:\S+\.)?aws_(?:secret|session|access)",
            _V,
        ),
        _rule(
            r"(?:secretsmanager get-secret-value|ssm get-parameters?\b.*--with-decryption|kms decrypt"
            r"|secretsmanager get-random-password|codeartifact get-authorization-token|sts|iam create|eks get-token)"
            r".*--query.*--output[ =]text",
            _C,
        ),
        _rule(r"secretsmanager (?:batch-)?get-|kms decrypt", _F, "secretstring secretbinary randompassword plaintext"),
        _rule(r"ssm get-parameters?(?:-by-path|-history)?\b.*--with-decryption", _F, "value"),
        _rule(r"iam create-|iam reset-", _F, f"{_AWS_KEYS} servicepassword servicecredentialsecret"),
        _rule(r"\bsts (?:assume-|get-session|get-federation)|sso get-role|export-credentials", _F, _AWS_KEYS),
        _rule(
            r"codeartifact get-auth|eks get-token|cognito-\S+ (?:initiate|admin-initiate|get-cred)|get-cluster-cred"
            r"|get-password-data",
            _F,
            f"{_AWS_KEYS} authorizationtoken accesstoken idtoken refreshtoken dbpassword passworddata secretkey",
        ),
    ),
    "gcloud": (
        _rule(
            r"auth (?:application-default )?print-\S*token|sql generate-login-token|keys get-key-string.*--format", _V
        ),
        _rule(r"secrets versions access", _C),
        _rule(r"reset-windows-password|get-key-string|keys create|describe", _F, "password keystring privatekeydata"),
    ),
    "az": (
        _rule(
            r"(?:get-access-token|secret show|credential (?:show|reset)|keys? (?:list|show)|list-keys|show-connection"
            r"|create-for-rbac|expose-token|generate-sas|admin-key show).*(?:-o|--output)[ =](?:tsv|none)",
            Output.WORDS,
        ),
        _rule(
            r"get-access-token|secret (?:show|download)|credential (?:show|reset)|keys? (?:list|show|renew)|list-keys"
            r"|connection-?string|create-for-rbac|expose-token|generate-sas|admin-key show|publishing-(?:cred|prof)",
            _F,
            "accesstoken value password key1 key2 primarykey secondarykey primarymasterkey secondarymasterkey"
            " publishingpassword connectionstring userpwd primaryconnectionstring secondaryconnectionstring",
        ),
    ),
    "gh glab hub tea": (
        _rule(r"auth token|auth get-access-token|^token\b", _V),
        _rule(r"auth status .*(?:-t|--show-token)", _F, "token"),
    ),
    "heroku": (
        _rule(r"auth:token|config:get", _V),
        _rule(r"^config\b|authorizations", _F, "token"),
    ),
    "doppler": (
        _rule(r"secrets get .*--plain|configure get token", _V),
        _rule(r"^secrets(?!.* --only-names)\b", _D, "value computed raw"),
        _rule(r"^configs tokens\b", _F, "token"),
    ),
    "chamber": (_rule(r"read .*(?:-q|--quiet)", _V), _rule(r"^(?:read|export|env|history)\b", _D)),
    "infisical": (_rule(r"secrets get .*--plain|^token\b", _V), _rule(r"^(?:secrets|export)\b", _D)),
    "sops": (_rule(r"(?:^| )(?:-d|--decrypt|decrypt)(?: |$)", _D), _rule(r"--extract", _V)),
    "gpg gpg2 age rage": (
        _rule(r"(?:^| )--gen-random\b", _V),
        _rule(r"(?:^| )(?:-[a-zA-Z]*d|--decrypt)(?: |$)(?!.*(?:-o|--output)[ =]\S)", _C),
    ),
    "ansible-vault": (_rule(r"^view\b|^decrypt .*(?:--output[ =]?-|/dev/stdout)|^decrypt$", _D),),
    "eyaml": (_rule(r"^decrypt\b", _C),),
    "kubectl oc k k3s microk8s minikube": (
        _rule(r"(?:^| )create token\b|view-secret\b|whoami .*(?:-t\b|--show-token)|^token (?:create|generate)", _V),
        _rule(r"get secrets?\b.*(?:jsonpath|go-template|custom-columns)", _C),
        _rule(r"(?:get|create|describe|extract|edit) secrets?\b|get secret/|extract secret/", _D),
        _rule(r"config view .*--raw|get-kubeconfig|^config$", _F, "token password client-key-data"),
    ),
    "kubeadm": (_rule(r"^token (?:create|generate)|certificate-key", Output.WORDS),),
    "docker podman": (_rule(r"swarm (?:join-token|unlock-key).*(?:-q|--quiet)", _V),),
    "talosctl": (_rule(r"^gen secrets", _D),),
    "argocd": (_rule(r"admin initial-password|account bcrypt", Output.FIRST), _rule(r"generate-token", _V)),
    "openssl": (
        _rule(r"^(?:rand|passwd|kdf)\b(?!.*-out )", _V),
        _rule(r"^(?:enc|aes\S*|rsautl|pkeyutl|smime|cms)\b.*-d(?:ecrypt)?\b(?!.*-out )", _C),
    ),
    "pwgen apg makepasswd pwqgen genpass gpw": (_rule("", Output.WORDS),),
    "mkpasswd xkcdpass diceware oathtool phx.gen.secret": (_rule("", _V),),
    "htpasswd": (_rule(r"-\w*n", _F),),
    "wg awg": (_rule(r"^gen(?:key|psk)|^show \S+ (?:private-key|preshared-keys)", Output.WORDS),),
    "consul nomad serf": (
        _rule(r"^keygen|keyring generate|gossip keyring", _V),
        _rule(r"^acl\b", _F, "secretid"),
    ),
    "step": (_rule(r"ca token|crypto rand|oauth .*--bare", _V),),
    "dotnet": (_rule(r"user-secrets list", _D),),
    "rails rake bin/rails bundle": (
        _rule(r"(?:^| )secret$", _V),
        _rule(r"credentials:(?:show|diff)|encrypted:show|secrets:show", _D),
    ),
    "mix": (_rule(r"^phx\.gen\.secret|^guardian\.gen\.secret", _V),),
    "php symfony console bin/console": (
        _rule(r"key:generate .*--show|jwt:secret .*(?:--show|-s\b)", _V),
        _rule(r"(?:^-r |^-r=).*(?:random_bytes|random_int|openssl_random|password_hash|uniqid)", _V),
        _rule(r"secrets:(?:reveal|list .*--reveal)", _D),
        _rule(r"tinker .*(?:echo|print|dump)\b.*(?i:password|passwd|secret|token|_key)\b", _V),
    ),
    "terraform tofu terragrunt": (_rule(r"^output .*(?:-json|--json)", _F, "value"),),
    "pulumi": (_rule(r"--show-secrets|^config get", _D),),
    "stripe": (_rule(r"--print-secret", _V), _rule(r"^config\b", _F)),
    "netlify ntl": (_rule(r"env:get", _V),),
    "vercel railway render": (
        _rule(r"^variables?(?!.*--set)\b", _D),
        _rule(r"^(?:env|tokens?)\b", _F, "token"),
    ),
    "fly flyctl": (_rule(r"auth token|tokens? create", _V),),
    "turso neonctl neon pscale databricks hf huggingface-cli upstash supabase convex cf ibmcloud": (
        _rule(r"tokens? create|auth token|auth tokens|oauth-token", _V),
        _rule(r"password create|api-key|service-key|projects api-keys|^status|^gen\b", _F, "secret password token key"),
    ),
    "firebase": (_rule(r"login:ci", Output.LAST),),
    "npm yarn pnpm": (
        _rule(r"^config get \S*(?i:token|password|_auth)", _V),
        _rule(r"^token (?:create|list)", _F, "token key"),
    ),
    "snyk composer pip poetry git conda": (
        _rule(r"^config (?:--\S+ )*(?:get )?\S*(?i:api$|token\b|password\b|secret\b|oauth)", _V),
        _rule(r"^credential(?:-\w+)? (?:fill|get)", _F, "password"),
    ),
    "elasticsearch-reset-password opensearch-reset-password kibana-encryption-keys": (_rule("", _F, "value key"),),
    "elasticsearch-create-enrollment-token kibana-verification-code": (_rule("", _V),),
    "nmcli": (_rule(r"(?:^| )(?:-s|--show-secrets)\b.*(?i:psk|password)", _V), _rule(r"wifi show-password", _F)),
    "netsh": (_rule(r"key=clear", _F, "keycontent content"),),
    "cryptsetup": (_rule(r"luksDump .*--dump", _D),),
    "elasticsearch-service-tokens elasticsearch-setup-passwords": (_rule("", _F, "service_token password"),),
    "mc mcli": (_rule(r"(?:svcacct|accesskey|user) (?:add|create|edit)", _F, "key"),),
    "wp": (_rule(r"^config get \S*(?i:pass|secret|salt|_key)", _V),),
    "redis-cli": (_rule(r"(?i:config get (?:requirepass|masterauth)|acl genpass)", _V),),
    "get-secret get-credential get-azkeyvaultsecret get-secretvalue": (_rule(".", _V),),
    "convertfrom-securestring": (_rule(r"(?i:-asplaintext)", _V),),
}
_BY_PROGRAM = {name: rules for names, rules in _SOURCES.items() for name in names.split()}
_PRINTERS = word_set(
    "cat head tail less more bat batcat type nl tac get-content gc view most zcat gzcat bzcat xzcat strings cut paste"
    " fold"
    " sort uniq rev column tee expand"
)
_ENCODERS = word_set("base64 base32 xxd od hexdump basenc openssl gbase64 certutil")
# Programs that print what they read, perhaps changed. All others consume a secret.
_FILTERS = (
    _PRINTERS
    | _ENCODERS
    | word_set(
        "jq yq xq dasel gron grep egrep fgrep rg ag awk gawk mawk sed tr perl python python3 ruby tee cat echo xargs"
        " fmt"
        " json_pp ansi2txt pv select-object select-string out-string convertfrom-json iconv dos2unix findstr sponge"
    )
)
_DIGESTS = word_set("sha1sum sha224sum sha256sum sha384sum sha512sum md5sum md5 shasum b2sum sha256 cksum")
_SILENT = word_set(
    "cd export set unset source . mkdir rm cp mv touch chmod chown sleep true false test [ [[ : read local declare"
    " typeset readonly pushd popd alias umask trap wait shift return exit ulimit hash let setopt shopt kill break"
    " continue"
    " disown renice fg bg set-location set-variable import-module clear ln install sync nvm pyenv"
)
_ECHOES = word_set("echo printf print write-output write-host")
_GENERATOR_CODE = compile_lazily(
    r"secrets\.|urandom|token_(?:hex|urlsafe|bytes)|get_random_secret_key|generate_key|randomBytes|getRandomValues"
    r"|SecureRandom|random_bytes|random_int|gen_salt|randbytes|RNGCrypto|GeneratePassword|rand_core|createHmac"
    r"|password_hash|hashpw|generate_password|random\.choice|randomUUID|getpass|keyring|get_password|getenv|environ"
    r"|process\.env"
)
_ENV_IN_CODE = compile_lazily(
    r"(?:environ|getenv|process\.env|ENV|\$_ENV|\$_SERVER)[.(\[\"' ]{1,6}(?:get\(\s*[\"'])?([A-Za-z_]\w+)"
)
_PRINTED_NAME = compile_lazily(
    r"\b(?:print|console\.log|puts|echo|say)\b[ (]{1,2}(?:\w+[.\[(\"']{1,3}){0,4}(\w+)[\"'\])]{0,4}(?:[;)]|\Z)"
)
_QUERY_PATH = compile_lazily(
    r"[.\[\"']+([A-Za-z_][\w-]*)[\"'\]]*(?:\s*\|\s*(?:tostring|@base64d|@text|values|\.\[\]))*\s*\Z"
)
_NAME_IN_PATTERN = compile_lazily(r"[A-Za-z_][\w-]{2,}")
_ENVIRONMENT_ITEM = compile_lazily(r"(?i)\(?(?:get-item |get-content |gi |gc )?\$?env:(\w+)\)?(?:\.value)?")
_DOTNET_VARIABLE = compile_lazily(r"(?i)\[(?:system\.)?environment\]::getenvironmentvariable\([\"'](\w+)")


def is_secret_variable(name: str) -> bool:
    """Whether a variable has the name of a secret."""
    return is_secret_name(name) or (len(split_name(name)) > 1 and is_env_key_name(name.upper()))


class Step(Struct):
    """What one command contributes to the output: nothing, fixed lines, a secret, or anything."""

    source: Source | None = None
    template: re.Pattern[str] | None = None
    literal: str | None = None
    is_silent: bool = False


# A cheap reason to parse a command at all. Names of variables and files are covered by their telling words.
_TRIGGER = compile_lazily(
    r"(?i)(?<![\w.])(?:"
    + "|".join(sorted({re.escape(name) for name in _BY_PROGRAM}, key=len, reverse=True))
    + r")(?![\w-])"
    r"|read -\w*s|pass|secret|token|key|cred|auth|pwd|pem\b|urandom|environ|\.env|netrc|npmrc|pypirc|pgpass|id_"
    r"|printenv|getenv"
    r"|p12|\bpw\b"
    r"|kube|tfvars|seed|mnemonic|wallet|recovery|restore|cookie|dsn|salt|random|sid\b|\.cnf|sha\d+sum|md5sum|consul|genkey"
)


@lru_cache(maxsize=1024)
def analyze_command(command: str) -> tuple[Step, ...]:
    """What the parts of a command print. Empty if nothing of it is secret."""
    if not _TRIGGER.search(command):
        return ()
    steps = _analyze(command, set(), 0)
    return tuple(steps) if any(step.source or step.template for step in steps) else ()


def _analyze(command: str, secret_variables: set[str], depth: int) -> list[Step]:
    steps: list[Step] = []
    for pipeline in parse_command(command)[:_MAX_STEPS]:
        steps += _analyze_pipeline(pipeline, secret_variables, depth)
    return steps


def _analyze_pipeline(pipeline: list[SimpleCommand], secret_variables: set[str], depth: int) -> list[Step]:
    current: list[Step] = [Step(is_silent=True)]
    selects_secret = False
    for at, wrapped in enumerate(pipeline):
        simple = unwrap(wrapped)
        if isinstance(simple, str):
            current = _analyze(simple, secret_variables, depth + 1) if depth < _MAX_NESTING else []
            if wrapped.is_redirected:
                current = [Step(is_silent=True)]
            continue
        _note_assignments(simple, secret_variables, depth)
        program = _program(simple)
        source = _source_of(simple, program, secret_variables, depth) or _selected_variables(pipeline[:at], simple)
        has_secret = any(step.source or step.template for step in current)
        if program in {"grep", "egrep", "rg", "findstr", "select-string", "sed", "awk", "gawk"}:
            selects_secret = selects_secret or _names_secret(simple.arguments[1:])
        if source is not None:
            current = [source]
        elif has_secret and program in _FILTERS | (_DIGESTS if _is_random_source(current) else frozenset()):
            current = [_filtered(step, program) for step in current]
        elif at and selects_secret and program in {"cut", "awk", "gawk", "sed", "tr", "head", "tail", "xargs", "perl"}:
            # The name was removed from a line that was selected by it.
            is_cut = program not in {"head", "tail", "xargs", "tr"}
            current = [Step(Source(_V))] if is_cut else current
        elif program in _SILENT or not program:
            current = [Step(is_silent=True)]
        else:
            current = [_echo_step(simple, program, secret_variables, depth) or Step()]
        if simple.is_redirected:
            current = [Step(is_silent=True)]
    return current


# `env | grep -i secret` prints the variables that the pattern names.
_ENVIRONMENT_PROGRAMS = word_set("env printenv set export declare")
_LINE_SELECTORS = word_set("grep egrep rg findstr select-string")


def _selected_variables(before: list[SimpleCommand], simple: SimpleCommand) -> Step | None:
    is_selected = before and before[-1].arguments[1:] == [] and _program(before[-1]) in _ENVIRONMENT_PROGRAMS
    if is_selected and _program(simple) in _LINE_SELECTORS and _names_secret(simple.arguments[1:]):
        return Step(Source(_D))
    return None


def _program(simple: SimpleCommand) -> str:
    first = simple.words[0].text if simple.words else ""
    name = first.rsplit("/", 1)[-1].rsplit("\\", 1)[-1]
    return name.removesuffix(".exe").removesuffix(".cmd").removesuffix(".bat").lower() if "/" not in first[:2] else name


_RANDOM = Source(_V, frozenset({"random"}))


def _is_random_source(steps: list[Step]) -> bool:
    return any(step.source is _RANDOM for step in steps)


def _filtered(step: Step, program: str) -> Step:
    """A step after a filter: what selects or decodes a field leaves only its value."""
    if step.source is None:
        return step
    if program in {"jq", "yq", "xq", "awk", "gawk", "cut", "sed", "dasel", "base64"} and step.source.output in {_F, _D}:
        return Step(Source(_C, step.source.fields))
    return step


def _note_assignments(simple: SimpleCommand, secret_variables: set[str], depth: int) -> None:
    """Remember the variables that get a secret."""
    assignments = dict(simple.assignments)
    if simple.words and simple.words[0].text in {"export", "local", "declare", "readonly", "typeset", "set"}:
        for word in simple.words[1:]:
            name, sign, value = word.text.partition("=")
            if sign:
                assignments[name.lstrip("-")] = Word(value, word.commands)
    for name, word in assignments.items():
        is_secret = any(variable in secret_variables or is_secret_variable(variable) for variable in word.variables)
        if is_secret or _prints_secret(word.commands, secret_variables, depth):
            secret_variables.add(name)
    if (
        simple.words
        and simple.words[0].text == "read"
        and any("s" in word.text for word in simple.words[1:] if word.text[:1] == "-")
    ):
        secret_variables.add(simple.words[-1].text)


def _prints_secret(commands: Iterable[str], secret_variables: set[str], depth: int) -> bool:
    return depth < _MAX_NESTING and any(
        step.source or step.template for command in commands for step in _analyze(command, secret_variables, depth + 1)
    )


def _source_of(simple: SimpleCommand, program: str, secret_variables: set[str], depth: int) -> Step | None:
    """The step of a command that prints a secret; None for other commands."""
    arguments = simple.arguments[1:]
    joined = " ".join(arguments)
    for pattern, source in _BY_PROGRAM.get(program, ()):
        if pattern.search(joined) and not _NO_SECRET.search(joined):
            return Step(source)
    if program in _ECHOES:
        return _echo_step(simple, program, secret_variables, depth, only_secret=True)
    if program in _INTERPRETERS:
        return _code_source(joined, arguments)
    if any(path.startswith("/dev/") and path.endswith("random") for path in (*simple.inputs, *_paths(arguments))):
        return Step(_RANDOM)
    if _selects_secret(program, arguments):
        return Step(Source(_V))
    return _file_source(program, [*simple.inputs, *arguments]) or _powershell_source(simple)


_INTERPRETERS = word_set("python python3 python2 node ruby perl deno bun elixir iex")


def _selects_secret(program: str, arguments: list[str]) -> bool:
    """Whether a command prints a value that its arguments name."""
    if program in _DATABASE_CLIENTS or program == "printenv":
        return any(map(is_secret_variable if program == "printenv" else _selects_secret_row, arguments))
    if program in {"terraform", "tofu", "terragrunt"} and arguments[:1] == ["output"]:
        return any(_has_secret_word(argument) for argument in arguments[1:] if not argument.startswith("-"))
    words = [argument for argument in arguments if not argument.startswith("-")]
    if program in _STORE_CLIENTS:
        verb = next((at for at, word in enumerate(words) if word.lower() in {"get", "hget", "getex", "mget"}), -1)
        return verb >= 0 and any(_has_secret_word(word.rsplit("/", 1)[-1]) for word in words[verb + 1 :])
    if program in {"kubectl", "oc", "k"} and "get" in words:
        return any("jsonpath" in argument and _JSON_PATH_END.search(argument) for argument in arguments) and any(
            _has_secret_word(match[1]) for argument in arguments for match in _JSON_PATH_END.finditer(argument)
        )
    if program in {"grep", "rg", "sed"}:
        return _names_secret(arguments) and _cuts_name(program, arguments)
    return program in {"jq", "yq", "xq", "dasel"} and any(map(_selects_secret_field, arguments))


def _cuts_name(program: str, arguments: list[str]) -> bool:
    """Whether a search for a name prints only what follows it: `sed -n 's/^password: //p' app.yml`."""
    letters = "".join(argument for argument in arguments if re.fullmatch(r"-\w+", argument))
    pattern = next((argument for argument in arguments if not argument.startswith("-")), "")
    if program == "sed":
        return "n" in letters and re.fullmatch(r"s(\W).*\1\w*p\w*", pattern) is not None
    return "o" in letters and ("\\K" in pattern or "(?<=" in pattern)


_DATABASE_CLIENTS = word_set(
    "psql mysql mariadb sqlite3 sqlite sqlcmd clickhouse-client cqlsh duckdb usql mycli pgcli litecli"
)
_STORE_CLIENTS = word_set("redis-cli valkey-cli keydb-cli etcdctl consul zkcli zkcli.sh")
_JSON_PATH_END = compile_lazily(r"\.([A-Za-z_][\w-]*)\}?[\"']?\Z")
_SELECT = compile_lazily(r"(?is)\bselect\s+(.{1,200}?)\s+from\s(.{0,400})")
_CONDITION = compile_lazily(r"(?i)(?:=|\blike|\bin\s*\()\s*['\"]%?([\w./:-]{3,80})%?['\"]")
_COLUMN = compile_lazily(r"[\w.\"`]{3,80}")


def _selects_secret_row(query: str) -> bool:
    """Whether a query is for a value whose column or whose name in another column is that of a secret."""
    match = _SELECT.search(query)
    if match is None:
        return False
    columns = [column.strip() for column in match[1].split(",")]
    if any(_COLUMN.fullmatch(column) and is_secret_name(column.strip('"`')) for column in columns):
        return True
    return any(_has_secret_word(name[1].rsplit("/", 1)[-1]) for name in _CONDITION.finditer(match[2]))


def _paths(arguments: list[str]) -> Iterator[str]:
    for argument in arguments:
        yield argument.partition("=")[2] if argument.startswith(("if=", "--file=")) else argument


def _code_source(joined: str, arguments: list[str]) -> Step | None:
    if "manage.py" in joined and "generate_secret_key" in joined:
        return Step(Source(_V))
    if not any(argument in {"-c", "-e", "-r", "-p", "-pe", "eval", "-m", "-le", "-ne", "-E"} for argument in arguments):
        return None
    if (
        "print" not in joined
        and "log" not in joined
        and "-p" not in arguments
        and not re.search(r"puts|echo|say|keyring", joined)
    ):
        return None
    names = [match[1] for match in _ENV_IN_CODE.finditer(joined)]
    if names:
        return Step(Source(_V)) if any(map(is_secret_variable, names)) else None
    if any(is_secret_variable(match[1]) for match in _PRINTED_NAME.finditer(joined)):
        return Step(Source(_V))
    return Step(_RANDOM) if _GENERATOR_CODE.search(joined) else None


def _selects_secret_field(query: str) -> bool:
    match = _QUERY_PATH.search(query)
    return match is not None and _has_secret_word(match[1])


def _has_secret_word(name: str) -> bool:
    return is_secret_name(name) or is_secret_variable(name.replace("-", "_"))


def _names_secret(arguments: list[str]) -> bool:
    """Whether the pattern of a search is the name of a secret."""
    patterns = [argument for argument in arguments if not argument.startswith("-")][:1]
    return any(_has_secret_word(match[0]) for pattern in patterns for match in _NAME_IN_PATTERN.finditer(pattern))


def _powershell_source(simple: SimpleCommand) -> Step | None:
    text = " ".join(simple.arguments)
    match = _ENVIRONMENT_ITEM.fullmatch(text) or _DOTNET_VARIABLE.match(text)
    return Step(Source(_V)) if match and is_secret_variable(match[1]) else None


_HOLE = r"(\S.{0,2000}?)"
_FORMAT_DIRECTIVE = compile_lazily(r"%[-0-9.]*[sqb]")
_ECHO_OPTION = compile_lazily(r"-[neE]+|--|-NoNewline", re.IGNORECASE)
_REFERENCE = compile_lazily(r"\$\{?#?[A-Za-z_]\w*[^}\s\"]*\}?|\$env:\w+|%[A-Za-z_]\w*%|" + SUBSTITUTED)


def _echo_step(
    simple: SimpleCommand, program: str, secret_variables: set[str], depth: int, *, only_secret: bool = False
) -> Step | None:
    """The step of a command that prints its arguments: a template with a hole for each secret, or fixed text."""
    if program not in _ECHOES:
        return None
    words = [word for word in simple.words[1:] if not _ECHO_OPTION.fullmatch(word.text)]
    text = " ".join(word.text for word in words)
    commands = iter([command for word in words for command in word.commands])
    is_secret = False
    pattern, last = "", 0
    for match in _REFERENCE.finditer(text):
        if match[0] == SUBSTITUTED:
            hole = _prints_secret([next(commands, "")], secret_variables, depth)
        elif match[0].startswith("${#"):
            hole = False
        else:
            name = re.sub(r"^(?:\$env:|[${%#]+)|[^\w].*$", "", match[0])
            hole = name in secret_variables or is_secret_variable(name)
        is_secret = is_secret or hole
        pattern += _escape(text[last : match.start()]) + (_HOLE if hole else ".{0,500}?")
        last = match.end()
    if not is_secret:
        return None if only_secret else Step(literal=text if last == 0 else None)
    pattern += _escape(text[last:])
    if program in {"printf", "print"} and _FORMAT_DIRECTIVE.search(words[0].text):
        pattern = _HOLE.join(map(_escape, _FORMAT_DIRECTIVE.split(words[0].text)))
    return Step(template=re.compile(rf"^{pattern}$", re.MULTILINE))


def _escape(text: str) -> str:
    """A pattern for a fixed text in a template, in which escapes are blanks."""
    return re.sub(r"(?:\\\\[nrt0]|\\ |\s)+", r"\\s*", re.escape(text))


# Files by name. Templates and public keys are not secret.
_HARMLESS_FILE = compile_lazily(
    r"(?i)\.(?:pub|crt|cer|csr|md|rst|py|js|ts|go|rb|java|c|h|rs|tsx|jsx|html|css|lock|log|tf|sh)$|example|sample"
    r"|template|\.dist$|schema"
)
_VALUE_FILE = compile_lazily(
    r"(?i)^/(?:var/)?run/secrets/|(?:^|[/\\])\.?secrets[/\\](?!readme|makefile|license|owners|dockerfile)[\w-]+$"
    r"|/(?:server|agent)/(?:node-)?token$|(?:^|[/\\._-])(?:initialadminpassword|master\.key"
    r"|\.?vault[-_]?(?:token|pass(?:word)?(?:\.txt)?)|\.?(?:[\w-]*[_-])?(?:token|password|passwd|passphrase|secret"
    r"|secret[_-]?key|api[_-]?key|pw"
    r"|access[_-]?key|psk|pat|credential|cookie_secret)(?:\.(?:txt|key|secret|token|conf))?|\.erlang\.cookie|privatekey"
    r"|preshared|initial_root_password)$|\.(?:secret|token|passwd|password|pass|psk)$"
)
_NOT_VALUE_FILE = compile_lazily(r"^/etc/(?:passwd|group|shadow)-?$")
_NAMED_FILE = compile_lazily(
    r"(?i)(?:^|[/\\])(?:\.env(?:\.[\w.-]+)?|[\w.-]*\.env|\.envrc|\.netrc|_netrc|\.npmrc|\.pypirc|\.pgpass|\.my\.cnf"
    r"|\.s3cfg|\.boto"
    r"|\.git-credentials|credentials(?:\.\w+)?|[\w.-]*(?:secrets?|credentials?)[\w.-]*\.(?:ya?ml|json|toml|ini"
    r"|properties|env|cfg|conf|xml)"
    r"|service[-_]?account[\w.-]*\.json|[\w.-]*\.tfvars(?:\.json)?|[\w.-]*\.tfstate|kubeconfig[\w.-]*|kube/config"
    r"|\.kube/config"
    r"|k3s\.yaml|\.docker/config\.json|hosts\.yml|wp-config\.php|local\.settings\.json|[\w.-]*\.auto\.tfvars)$"
    r"|(?:^|[/\\])\.(?:aws|kube|docker)[/\\]\w+$"
)
_SEED_FILE = compile_lazily(
    r"(?i)(?:^|[/\\._-])(?:seed|mnemonic|wallet|recovery|restore)(?:[_-]?(?:phrase|words|seed|key|backup))?"
    r"(?:[_-]?[0-9]{1,4})?(?:\.(?:txt|seed|words|bak))?$"
)
_KEY_FILE = compile_lazily(
    r"(?i)(?:^|[/\\])id_(?:rsa|dsa|ecdsa|ed25519)$|\.(?:pem|key|p12|pfx|jks|keystore|ppk|kdbx|asc|gpg)$"
)


def classify_file(path: str) -> Source | None:
    """What the content of a file is, by its name; None if that is not secret."""
    path = path.strip("\"'")
    if _HARMLESS_FILE.search(path) or _NOT_VALUE_FILE.search(path) or len(path) > _MAX_LINES:
        return None
    if _VALUE_FILE.search(path) or _KEY_FILE.search(path):
        return Source(_C)
    if _SEED_FILE.search(path):
        return Source(Output.PHRASE)
    return Source(_F) if _NAMED_FILE.search(path) else None


def _file_source(program: str, arguments: list[str]) -> Step | None:
    """The step of a program that prints a secret file."""
    if program not in _PRINTERS | _ENCODERS | {"tr", "awk", "sed", "xargs", "zcat", "dd"}:
        return None
    for path in _paths(arguments):
        source = None if path.startswith("-") else classify_file(path)
        if source is not None:
            is_encoded = program in _ENCODERS and not {"-d", "--decode", "-D", "-r"} & set(arguments)
            return Step(Source(Output.WORDS) if is_encoded and source.output is _C else source)
    return None


_ANSI = compile_lazily(r"\x1b\[[0-?]*[ -/]*[@-~]")
_GUTTER = compile_lazily(r"[ \t]*[0-9]{1,6}(?:\u2192|\t)")
_NUMBERED_LINE = compile_lazily(r"(?m)^[ \t]*[0-9]{1,6}(?:\u2192|\t)")
_MAX_PHRASE = 2000
_MESSAGE_START = compile_lazily(
    r"(?i)\W*(?:error|err|fatal|warning|warn|usage|note|info|hint|debug|exception|traceback|exit code|e:|w:|(?:-?bash"
    r"|zsh|sh|gpg|age"
    r"|aws|az|gcloud|kubectl|op|pass|vault|security|secret-tool|cat|head|tail|base64|jq|yq|openssl|sudo|ssh|docker"
    r"|curl|error from server)\b"
    r"[^\n]{0,60}:\s|unable to|an error occurred|no such|could not|command not found|please\b|enter\b|failed\b"
    r"|permission denied"
    r"|connection\b|\"[^\"<]{0,80}<[^>]{1,80}>\"$|\[sudo\]|password:?\s*$|passphrase:?\s*$|\(no (?:content|output)\)"
    r"|<system-reminder>|</?\w[\w-]*>\s*$)"
)
_MESSAGE_PART = compile_lazily(
    r"(?i)not found|no such file|permission denied|is not in the password store|cannot |could not |unable to "
    r"|does not exist"
    r"|isn't an item|not logged in|must |invalid |has expired|unauthorized|not authorized|access denied"
    r"|command not found"
    r"|try again|not signed in|session expired|timed? ?out| was not | is not |don't have|do not have"
)
_BORING = word_set(
    "true false null none nil yes no on off ok done undefined n/a na unset empty success successful failed active"
    " inactive enabled disabled opaque bearer basic default never unknown map[] {} [] --- latest stable plain text"
)
_PAIR = compile_lazily(
    r"^[ \t|\u2502*>-]*(?:export[ \t]+|set[ \t]+|PASSWORD[ \t]+)?[\"']?([A-Za-z_][\w .()/:-]{0,80}?)[\"']?[ \t]*"
    r"(?:(?:=>|:=|[:=])[ \t]*|[ \t]*[|\u2502][ \t]*|\t+|[ ]{2,})[\"']?([^\n]{1,16000}?)[\"']?[ \t]*[,;|\u2502]?[ \t]*$",
    re.MULTILINE,
)
_EQUALS_PAIR = compile_lazily(r"^[\"']?([A-Za-z_][\w.:-]{0,120})[\"']? = [\"']?([^\n]{1,16000}?)[\"']?$")
_JSON_PAIR = compile_lazily(r'"([A-Za-z_][\w .:-]{0,80})"[ \t]{0,4}:[ \t]{0,4}"((?:[^"\\\n]|\\.){1,16000})"')
_METADATA = word_set(
    "name namespace kind apiversion type created_time creationtimestamp deletion_time destroyed version custom_metadata"
    " request_id lease_id lease_duration renewable uid resourceversion selflink accessor token_accessor policies"
    " token_policies identity_policies token_renewable token_duration ttl arn versionid createdate expiration region"
    " status"
    " key value keys username user user_name host hostname port url uri db database id title vault tags created updated"
    " account tenant subscription expireson expires_on tokentype token_type warnings data metadata annotations labels"
    " app env environment stage message managed-by description note level log_level timezone lastmodified email issuer"
    " service publickey public_key"
)


# Names that say nothing about their value. In decrypted data it is secret if it looks like a password.
_VAGUE_NAMES = word_set("key value db database data app service note account")


def find_printed_secrets(command: str, output: str) -> list[Span]:
    """The secrets in the output of a command."""
    steps = analyze_command(command) if output else ()
    if not steps:
        return []
    return _find_in_output(list(steps), output)


def find_in_secret_file(path: str, content: str) -> list[Span]:
    """The secrets in the content of a file that is secret by its name."""
    source = classify_file(path) if content else None
    return _find_in_output([Step(source)], content) if source is not None else []


class _Line(Struct):
    """A line of output: its position, and its text without line numbers and colours."""

    start: int
    end: int
    text: str


def _split_output(output: str) -> list[_Line]:
    lines: list[_Line] = []
    at = 0
    for raw in output[:_MAX_OUTPUT].split("\n")[:_MAX_LINES]:
        end = at + len(raw)
        gutter = _GUTTER.match(raw)
        start = at + (gutter.end() if gutter else 0)
        body = output[start:end]
        stripped = body.strip()
        if stripped:
            begin = start + body.index(stripped[0])
            lines.append(_Line(begin, begin + len(stripped), stripped))
        at = end + 1
    return lines


def _find_in_output(steps: list[Step], output: str) -> list[Span]:
    lines = _split_output(output)
    literals = {part.strip() for step in steps if step.literal for part in re.split(r"\\n|\n", step.literal)}
    lines = [line for line in lines if _ANSI.sub("", line.text) not in literals and not _is_message(line.text)]
    secret_steps = [step for step in steps if step.source or step.template]
    is_alone = all(step.source or step.template or step.is_silent or step.literal is not None for step in steps)
    spans: list[Span] = []
    for step in secret_steps:
        if step.template is not None:
            spans += _find_by_template(step.template, lines)
            continue
        if step.source is None:
            continue
        if step.source.output is Output.PHRASE:
            phrase = find_lone_phrase(_NUMBERED_LINE.sub(lambda gutter: " " * len(gutter[0]), output[:_MAX_PHRASE]))
            spans += [phrase] if phrase is not None else []
            continue
        visible = [item for item in steps if not item.is_silent and item.literal is None]
        is_first, is_last = visible[0] is step, visible[-1] is step
        candidates = lines if is_alone else _likely_values(lines, is_first=is_first, is_last=is_last)
        spans += _find_by_source(step.source, lines, candidates, output)
    return [span for span in spans if span.end > span.start]


def _likely_values(lines: list[_Line], *, is_first: bool, is_last: bool) -> list[_Line]:
    """The lines that may be the value, if other commands also print lines."""
    edges = ([lines[0]] if is_first and lines else []) + ([lines[-1]] if is_last and lines else [])
    return [line for line in lines if line in edges or _is_password_like(line.text)]


def _find_by_template(template: re.Pattern[str], lines: list[_Line]) -> Iterator[Span]:
    for line in lines:
        match = template.search(line.text)
        for group in range(1, template.groups + 1) if match else ():
            if match and match[group]:
                yield from _value_span(line.start + match.start(group), match[group])


def _find_by_source(source: Source, lines: list[_Line], candidates: list[_Line], output: str) -> Iterator[Span]:
    match source.output:
        case Output.VALUE:
            is_phrase = len(candidates) == 1 and _is_passphrase(candidates[0].text)
            for line in candidates:
                is_value = is_phrase or " " not in line.text
                yield from _value_span(line.start, line.text) if is_value else _find_random_words(line)
        case Output.WORDS:
            for line in candidates:
                yield from _find_words(line)
        case Output.FIRST:
            if candidates and (" " not in candidates[0].text or _is_passphrase(candidates[0].text)):
                yield from _value_span(candidates[0].start, candidates[0].text)
            yield from _find_named(lines, output, source.fields, is_all=False)
        case Output.LAST:
            if candidates and " " not in candidates[-1].text:
                yield from _value_span(candidates[-1].start, candidates[-1].text)
        case Output.CONTENT:
            yield from _find_in_content(source, candidates, output)
        case _:
            yield from _find_in_fields(source, lines, candidates, output)


def _find_in_fields(source: Source, lines: list[_Line], candidates: list[_Line], output: str) -> Iterator[Span]:
    has_names = any(_PAIR.match(line.text) for line in lines) or '": "' in output or '":"' in output
    yield from _find_named(lines, output, source.fields, is_all=source.output is Output.DATA)
    if not has_names:
        for line in candidates:
            yield from _find_random_words(line)


_MAX_VALUE_LINES = 8


def _find_in_content(source: Source, lines: list[_Line], output: str) -> Iterator[Span]:
    """One value, or named values. PEM blocks are found by their own rule."""
    if "-----BEGIN" in output:
        return
    values = [line for line in lines if " " not in line.text]
    is_values = len(lines) <= _MAX_VALUE_LINES and not any(_PAIR.match(line.text) for line in lines)
    if is_values and not output.lstrip().startswith(("{", "[")):
        for line in values if len(values) == len(lines) else lines[:1]:
            if " " not in line.text or _is_passphrase(line.text):
                yield from _value_span(line.start, line.text)
        return
    yield from _find_named(lines, output, source.fields, is_all=True)


_DATA_BLOCK = compile_lazily(
    r"^([ \t]*)[\"']?(?:data|stringData)[\"']?:[ \t]*\{?[ \t]*\n((?:\1[ \t]+[^\n]*(?:\n|\Z))+)", re.MULTILINE
)


def _find_named(lines: list[_Line], output: str, fields: frozenset[str], *, is_all: bool) -> Iterator[Span]:
    """Values of secret names; with `is_all`, of all names that are not metadata."""
    pairs = [
        (line.start, match) for line in lines if (match := _EQUALS_PAIR.match(line.text) or _PAIR.match(line.text))
    ]
    if '"' in output:
        pairs += [(0, match) for match in _JSON_PAIR.finditer(output[:_MAX_OUTPUT])]
    blocks = [match.span(2) for match in _DATA_BLOCK.finditer(output[:_MAX_OUTPUT])] if is_all else []
    for offset, match in pairs:
        name, value = match[1].strip(), match[2].strip()
        place = offset + match.start(2)
        if any(start <= place < end for start, end in blocks):
            yield from _value_span(place + match[2].index(value), value)
            continue
        words = name.lower()
        last = words.split()[-1] if words.split() else ""
        is_named = words in fields or last in fields or words.replace(" ", "") in fields or _has_secret_word(name)
        is_metadata = words in _METADATA or last in _METADATA
        if is_metadata and words in _VAGUE_NAMES and _is_password_like(value):
            is_metadata = False
        if not is_named and not (is_all and not is_metadata and _is_private_value(value)):
            continue
        if value[:1] in "{[<|>&*(" and not value[1:2].isalnum():
            continue
        start = offset + match.start(2) + match[2].index(value)
        if " " in value and not _is_passphrase(value):
            continue
        yield from _value_span(start, value)


def _is_private_value(value: str) -> bool:
    """Whether an unnamed value of a secret store may be a secret: not a number, host, path, date or ordinary word."""
    return not (
        re.fullmatch(
            r"[0-9.,:TZ+-]{1,32}|[a-z]{1,11}|[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::[0-9]+)?|[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
            value,
        )
        or heuristics.is_path(value)
    )


def _find_words(line: _Line) -> Iterator[Span]:
    for match in re.finditer(r"\S+", line.text):
        if len(match[0]) >= _MIN_GENERATED or " " not in line.text:
            yield from _value_span(line.start + match.start(), match[0])


_MIN_GENERATED = 6
_MIN_RANDOM = 12
_MIN_LIKELY = 8


def _find_random_words(line: _Line) -> Iterator[Span]:
    for match in re.finditer(r"[^\s\"',;|]+", line.text):
        if len(match[0]) >= _MIN_RANDOM and _is_password_like(match[0]):
            yield from _value_span(line.start + match.start(), match[0])


def _value_span(start: int, text: str) -> Iterator[Span]:
    """The span of a value without quotes and colours, unless it is not a secret."""
    bare = text.strip("\"'`,")
    colour = _ANSI.match(bare)
    value = _ANSI.sub("", bare[colour.end() :] if colour else bare).strip("\"'")
    at = text.find(value)
    if at < 0 or not can_be_secret(value):
        return
    yield Span(start + at, start + at + len(value), KIND, local_only=not _is_distinctive(value))


def can_be_secret(value: str) -> bool:
    """Whether a text that is printed in the place of a secret may be one."""
    return (
        len(value) >= _MIN_VALUE
        and value.lower() not in _BORING
        and heuristics.is_literal(value)
        and any(map(str.isalnum, value))
        and not value.startswith(("$", "-----"))
        and set(value) - set("*.•x-_=#") != set()
    )


def _is_distinctive(value: str) -> bool:
    """Whether the value can be removed everywhere without removing ordinary words."""
    return len(value) >= _MIN_LIKELY and not re.fullmatch(
        r"[a-z]+|[A-Z]+|[A-Z][a-z]+|[0-9]{1,9}|[\w.-]*/[\w./-]*", value
    )


def _is_message(line: str) -> bool:
    bare = _ANSI.sub("", line)
    return bool(_MESSAGE_START.match(bare)) or (" " in bare and bool(_MESSAGE_PART.search(bare)))


def _is_passphrase(text: str) -> bool:
    """Whether a text with blanks can be a passphrase: a few words without punctuation of a sentence."""
    words = text.split(" ")
    return 2 <= len(words) <= 24 and len(text) <= 200 and not re.search(r"[:.,;?!]( |$)|\t|  ", text)  # noqa: PLR2004 - a recovery phrase has 24 words


_NO_PASSWORD = compile_lazily(
    r"[\w./-]+\.[a-z]{1,5}(?::.*)?|[0-9.:T+Z-]+|[a-z0-9-]+(?:\.[a-z0-9-]+)+|[A-Za-z][a-z]*(?:[-_./][A-Za-z]+)*"
)
_MANY_CLASSES, _SOME_CLASSES, _LIKELY_ENTROPY = 3, 2, 3


def _is_password_like(text: str) -> bool:
    """Whether a word looks like a password, next to lines of another command's output."""
    if not _MIN_LIKELY <= len(text) <= 4096 or " " in text or heuristics.is_path(text):  # noqa: PLR2004 - longer than any token
        return False
    if _NO_PASSWORD.fullmatch(text):
        return False
    classes = sum(any(map(is_it, text)) for is_it in (str.islower, str.isupper, str.isdigit))
    if classes < _SOME_CLASSES:
        return False
    return (
        classes == _MANY_CLASSES
        or heuristics.entropy(text) > _LIKELY_ENTROPY
        or re.search(r"[!@#$%^&*+=]", text) is not None
    )


# Shell sessions in texts: a prompt, a command, and its output up to the next prompt, blank line or fence.
_PROMPT = compile_lazily(
    r"^(?:[ \t>|]{0,8})(?:(?:\([\w.-]+\)[ ]?)?(?:\[?[\w.-]+@[\w.-]+[^\n$#%>]{0,80}\]?|[~/][\w./~-]{0,80}"
    r"|PS [A-Z]:[^\n>]{0,80})?[$#%\u276f>\u279c]"
    r")[ \t]+(?=[A-Za-z./~(\"$\[{])([^\n]{2,2000})$",
    re.MULTILINE,
)
_PROMPT_SIGN = compile_lazily(r"[$#%\u276f>\u279c][ \t]+(?=[A-Za-z./~($\[])")
_SESSION_END = compile_lazily(r"^[ \t]*(?:```|~~~|$)", re.MULTILINE)
_MAX_SESSION = 16_384
_MAX_PROMPT = 200


class _TypedCommand(Struct):
    """A command after a prompt, with the lines that continue it, and its position with the prompt."""

    start: int
    end: int
    text: str


def _find_commands(text: str) -> Iterator[_TypedCommand]:
    """The commands after a prompt, each searched by the sign of its prompt."""
    done = 0
    for sign in _PROMPT_SIGN.finditer(text):
        start = text.rfind("\n", max(0, sign.start() - _MAX_PROMPT), sign.start()) + 1
        if start < done or (start == 0 and sign.start() > _MAX_PROMPT):
            continue
        match = _PROMPT.match(text, start)
        if match is not None:
            command, done = _continue_command(text, match)
            yield _TypedCommand(match.start(), done, command)


_CONTINUED_LINE = compile_lazily(r"\n(?:[ \t]{0,8}>[ \t]{1,8})?([^\n]*)")


def _continue_command(text: str, prompt: re.Match[str]) -> tuple[str, int]:
    """A command with the lines that continue it, without their prompts; and where it ends."""
    lines = [prompt[1]]
    end = prompt.end()
    while lines[-1].endswith("\\") and (line := _CONTINUED_LINE.match(text, end)):
        lines.append(line[1])
        end = line.end()
    return "\n".join(lines), end


def find_in_shell_sessions(text: str) -> list[Span]:
    """The secrets that commands print in shell sessions inside a text."""
    spans: list[Span] = []
    commands = list(_find_commands(text))
    for command, following in zip_longest(commands, commands[1:]):
        if not analyze_command(command.text):
            continue
        start = command.end + 1
        stop = min(following.start if following is not None else len(text), start + _MAX_SESSION)
        end = _SESSION_END.search(text, start, stop)
        output = text[start : end.start() if end else stop]
        spans += [
            span._replace(start=span.start + start, end=span.end + start)
            for span in find_printed_secrets(command.text, output)
        ]
    return spans


# Secrets of Kubernetes as files: every value below `data` and `stringData`, until a line with less indentation.
_MANIFEST_KIND = compile_lazily(r"kind[\"']?: ?[\"']?Secret\b")
_MANIFEST_DATA = compile_lazily(
    r"^((?:[ \t]*[0-9]{1,6}(?:\u2192|\t))?[ \t+-]*)(?:data|stringData):[ \t]*\n"
    r"((?:(?:[ \t]*[0-9]{1,6}(?:\u2192|\t))?[ \t+-]*[ \t][\w.\"'/-]{1,120}:[^\n]*(?:\n|\Z)){1,200})",
    re.MULTILINE,
)
_MANIFEST_OBJECT = compile_lazily(r'"(?:data|stringData)"\s{0,20}:\s{0,20}\{([^{}]{1,20000})\}')
_MANIFEST_LINE = compile_lazily(
    r"^(?:[ \t]*[0-9]{1,6}(?:\u2192|\t))?([ \t+-]*)([\w.\"'/-]{1,120}):[ \t]+([^\n]{1,16000})$", re.MULTILINE
)
_MANIFEST_END = compile_lazily(r"^(?:[ \t]*[0-9]{1,6}(?:\u2192|\t))?[+ ]?---", re.MULTILINE)


def find_in_manifests(text: str) -> list[Span]:
    """The values of Kubernetes Secrets in a text, in YAML or JSON."""
    if "Secret" not in text or not _MANIFEST_KIND.search(text):
        return []
    spans: list[Span] = []
    bounds = [0, *(end.end() for end in _MANIFEST_END.finditer(text)), len(text)]
    for start, stop in pairwise(bounds):
        if not _MANIFEST_KIND.search(text, start, stop):
            continue
        for block in _MANIFEST_DATA.finditer(text, start, stop):
            lines = list(_MANIFEST_LINE.finditer(text, *block.span(2)))
            indent = len(lines[0][1]) if lines else 0
            spans += _manifest_spans((line.start(3), line[2], line[3]) for line in lines if len(line[1]) == indent)
        for block in _MANIFEST_OBJECT.finditer(text, start, stop):
            pairs = _JSON_PAIR.finditer(text, *block.span(1))
            spans += _manifest_spans((pair.start(2), pair[1], pair[2]) for pair in pairs)
    return spans


def _manifest_spans(values: Iterable[tuple[int, str, str]]) -> Iterator[Span]:
    for start, name, value in values:
        if name.strip("\"'").lower() not in _METADATA - _VAGUE_NAMES and _is_private_value(value):
            yield from _value_span(start, value)


# Programs that print a generated password in a sentence.
_ANNOUNCED = compile_lazily(
    r"(?i)p(?:assword|assphrase|asscode)(?:s)?\b(?<!no password)(?: (?:for|of|is|was|has been|generated|created|set|to"
    r"|the|user|account|admin"
    r"|root|your|new|temporary|initial|as|by|a|and|only|shown|once|this|will|be|not|again|default)\b| [\w.-]+@[\w.-]+"
    r"| [`'\"]\w+[`'\"]| elastic| \([^()\n]{1,120}\)){1,10}"
    r"[ ]?(?:is|to|=|:|as)?:?[ \t]*\n?[ \t]*[`'\"]?([^\s`'\"]{6,128})[`'\"]?[ \t]*(?:$|\n)",
    re.MULTILINE,
)
_ANNOUNCING = compile_lazily(
    r"(?i)(?:temporary|initial|generated|new|default|admin|root|bootstrap|setup|auto)[\w -]{0,30}\bpassword"
    r"|password[^\n]{0,60}(?:generated|temporary)|password for the [\w-]{1,40} user"
)


def find_announced_passwords(text: str) -> list[Span]:
    """Passwords that a program generated and announces in a sentence."""
    if "assword" not in text or not _ANNOUNCING.search(text):
        return []
    return [
        Span(*match.span(1), "password", local_only=not _is_distinctive(match[1]))
        for match in _ANNOUNCED.finditer(text)
        if can_be_secret(match[1]) and _is_password_like(match[1].rstrip(".,"))
    ]


# Conversations: an answer to a question for a password.
_ASKED_NOUN = r"(?:pass(?:word|phrase|code)|\bpin\b|api[ -]?key|access (?:key|token)|secret(?: key)?|token|credential)"
_ASKING = compile_lazily(
    rf"(?i)(?:what(?:'s| is| are|\u2019s)?|which|enter|provide|paste|send|share|give|type|tell|need|supply|input|have"
    rf"|know)\b[^\n?.!]{{0,80}}{_ASKED_NOUN}"
    rf"[^\n?.!]{{0,80}}(?:[?:.!]|$)|{_ASKED_NOUN}[^\n?.!]{{0,40}}(?:\?|:\s*$)"
)
_NOT_ASKING = compile_lazily(
    r"(?i)(?<!password )(?<!passphrase )(?<!passcode )\b(?:should|shall)\b"
    r"|\b(?:do you want|would you like|how many|how long|rotate|where|why|when|store|delete|remove)\b"
)
_ANSWER = compile_lazily(
    r"(?i)\s*(?:(?:sure|ok(?:ay)?|yes|yep)[,.!:]?\s+)?"
    r"(?:(?:it'?s|it is|use|try|sure|ok|yes|here(?: it is| you go)?|the (?:password|token|key|pin|passphrase"
    r"|secret) is|password|pw)[:,]?\s+)?"
    r"[`'\"]?([^\s`'\"]{4,512})[`'\"]?\.?\s*"
)
_NO_ANSWER = word_set(
    "yes no ok okay sure continue skip none stop cancel nothing never later done thanks go next abort quit exit what"
    " why"
    " how idk unknown whatever proceed retry again help wait same default empty n/a other nope yeah yep clear correct"
    " right"
)
_TAIL = 600
_SENTENCE = compile_lazily(r"[^\n.?!]+[.?!]*")


def asks_for_secret(text: str) -> bool:
    """Whether a text ends with a question or request for a secret."""
    sentences = _SENTENCE.findall(text[-_TAIL:])
    return any(_ASKING.search(sentence) and not _NOT_ASKING.search(sentence) for sentence in sentences[-3:])


def find_answer(text: str) -> Span | None:
    """The secret in an answer to such a question, if it is a single word."""
    match = _ANSWER.fullmatch(text) if len(text) < _TAIL else None
    if match is None or match[1].lower().rstrip(".!?,") in _NO_ANSWER or match[1][0] in "/<" or "://" in match[1]:
        return None
    if not can_be_secret(match[1]):
        return None
    return Span(*match.span(1), "password", local_only=not _is_distinctive(match[1]))
