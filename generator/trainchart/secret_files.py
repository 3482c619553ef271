"""Tells which files hold passwords, tokens or keys: by their names (secret_names.py), and by what they hold. Pure.

What it decides keeps such files out of images and charts, which everyone who pulls them can read.
"""

from __future__ import annotations

import base64
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainchart.json_documents import parse_json
from trainchart.kubernetes_yaml import YamlError, parse_documents
from trainchart.secret_copies import ANY_COPY, find_originals, list_copy_patterns
from trainchart.secret_lines import read_secret_lines
from trainchart.secret_names import HARMLESS_NAMES, SECRET_NAMES, TOKEN_NAMES, holds_login, is_secret_name
from trainchart.secret_templates import GIVEN_LATER, replace_actions, restore_literals

_LARGEST = 1024 * 1024
"""Bytes; the content of larger files is not searched: they are data."""
_LARGEST_NOTEBOOK = 16 * 1024 * 1024
"""Bytes of a notebook: beside the code, it holds pictures."""
_SHOWN = 4
"""Secrets of one file that are named beside the first."""
_NEWLINE = rb"(?:\r?\n|(?:\\r)?\\n)[ \t]*"
"""The end of a line, also as it is written inside a string, and how far the next one is indented."""
_QUOTE = r"(?:\\?[\"'])?"
"""A quotation mark, perhaps: in a string, as in a notebook, it is escaped."""


@dataclass(frozen=True)
class FoundSecret:
    """Why a file is taken for a secret."""

    title: str
    """What it holds, such as `a private key`."""
    line: int = 0
    """Where it stands, from 1; 0 where the name of the file says it."""
    others: tuple[tuple[int, str], ...] = ()
    """Lines and titles of all other secrets in the file, in the order of lines."""

    @property
    def reason(self) -> str:
        """What the file holds, in words; at most five secrets of it."""
        if not self.line:
            return f"files of this name hold {self.title}"
        more = [f"line {line}: {title}" for line, title in self.others[:_SHOWN]]
        if len(self.others) > _SHOWN:
            more.append(f"and {len(self.others) - _SHOWN} more")
        return "; ".join((f"holds {self.title}", *more))


@dataclass(frozen=True)
class _Form:
    """How a kind of secret is written: one of `marks` stands in the file, and `pattern` matches."""

    title: str
    marks: tuple[bytes, ...]
    pattern: re.Pattern[bytes]


def _form(title: str, marks: str, pattern: str | bytes, flags: int = 0) -> _Form:
    body = pattern if isinstance(pattern, bytes) else pattern.encode()
    return _Form(title, tuple(marks.encode().split()), re.compile(body, flags))


_FORMS = (
    # Code that only mentions the first line of a key has no base64 on the next one.
    _form(
        "a private key",
        "PRIVATE",
        rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----[ \t]*"
        rb"%b(?:[A-Za-z-]{1,40}: [^\n\\]{0,200}%b|%b){0,20}[A-Za-z0-9+/=]{32}" % ((_NEWLINE,) * 3),
    ),
    _form("a private key", "PuTTY-User-Key-File-", r"(?m)^PuTTY-User-Key-File-\d: "),
    _form("a private key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    _form("a private key", "PrivateKey", r"(?m)^PrivateKey\s*=\s*[A-Za-z0-9+/]{43}=\s*$"),
    _form("a GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"\bgh[pousr]_[A-Za-z0-9]{36}"),
    _form("a GitHub token", "github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{60,}"),
    _form("a GitLab token", "glpat-", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    _form("a Hugging Face token", "hf_", r"\bhf_[A-Za-z0-9]{34,}\b"),
    _form("a PyPI token", "pypi-", r"\bpypi-AgE[A-Za-z0-9_-]{40,}"),
    _form("an npm token", "npm_", r"\bnpm_[A-Za-z0-9]{36}\b"),
    _form("an npm token", "_authToken", r"_authToken\s*=\s*[A-Za-z0-9_-]{20,}"),
    _form("a Slack token", "xoxb- xoxa- xoxp- xoxr- xoxs-", r"\bxox[abprs]-[0-9A-Za-z-]{20,}"),
    _form("an OpenAI key", "T3BlbkFJ", r"\bsk-[A-Za-z0-9_-]{0,200}T3BlbkFJ[A-Za-z0-9_-]{20,}"),
    _form("an Anthropic key", "sk-ant-", r"\bsk-ant-[a-z0-9]+-[A-Za-z0-9_-]{40,}"),
    _form("a Google key", "AIza", r"\bAIza[0-9A-Za-z_-]{35}\b"),
    _form("a Google secret", "GOCSPX-", r"\bGOCSPX-[A-Za-z0-9_-]{28}"),
    _form("a Google token", "ya29.", r"\bya29\.[A-Za-z0-9_-]{40,}"),
    _form("a Stripe key", "k_live_", r"\b[rs]k_live_[0-9A-Za-z]{24,}"),
    _form("a Vault token", "hvs. hvb.", r"\bhv[sb]\.[A-Za-z0-9_-]{24,}"),
    _form("a DigitalOcean token", "dop_v1_ doo_v1_", r"\bdo[op]_v1_[a-f0-9]{64}"),
    _form("a Databricks token", "dapi", r"\bdapi[a-f0-9]{32}\b"),
    _form("a SendGrid key", "SG.", r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    _form("an Azure key", "AccountKey= SharedAccessKey=", r"(?:Account|SharedAccess)Key=[A-Za-z0-9+/]{42,}={1,2}"),
    _form(
        "a secret key of AWS or another object store",
        "secret SECRET Secret",
        rf"(?i)secret_?(?:access_?)?key{_QUOTE}\]?\s*[:=]\s*{_QUOTE}(?!\S{{0,60}}EXAMPLE)[A-Za-z0-9/+]{{40}}(?![A-Za-z0-9/+=])",
    ),
    _form("a Weights & Biases key", "WANDB_API_KEY", rf"WANDB_API_KEY{_QUOTE}\]?\s*[:=]\s*{_QUOTE}[0-9a-zA-Z_]{{40,}}"),
    _form(
        "a login",
        "password",
        r"\bmachine\s{1,9}\S{1,99}\s{1,9}login\s{1,9}\S{1,99}\s{1,9}password\s{1,9}[A-Za-z0-9_-]{20,}",
    ),
    _form(
        "the login of a package index",
        "/simple",
        r"https?://[^\s/:@\"'<>${}]{1,99}:[^\s/:@\"'<>${}]{1,199}@\S{1,199}/simple",
    ),
    _form("the login of a cluster", "client-key-data", rf"client-key-data{_QUOTE}\s*:\s*{_QUOTE}[A-Za-z0-9+/]{{32,}}"),
    _form(
        "the login of a cluster",
        "current-context",
        # Not beyond the next such word, which begins a search of its own.
        r"(?s)\busers[\"']?\s*:(?:(?!\busers[\"']?\s*:).){0,2000}?\b(?:token|password)[\"']?\s*:\s*[\"']?[^\s\"'<{]{16,}",
    ),
    _form(
        "a token",
        "eyJ",
        r"\beyJ[A-Za-z0-9_-]{10,400}\.eyJ[A-Za-z0-9_-]{20,4000}\.(?!SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c)[A-Za-z0-9_-]{20,}",
    ),
)
"""One by one, each with what makes most files pass without the pattern being tried.

Whatever repeats inside a pattern has an end, so that no file makes it slow: third-party charts are searched, too.
"""
_STORES: Mapping[bytes, str] = {
    b"\xfe\xed\xfe\xed": "a key store",
    b"\xce\xce\xce\xce": "a key store",
    b"\x03\xd9\xa2\x9a": "a password store",
}
"""How binary files begin: keystores of Java, and KeePass."""
_JSON_MARKS = (b'"private_key"', b'"refresh_token"', b'"client_secret"', b'"kty"', b'"auths"', b'"Secret"', b'"key"')
_REGISTRY_LOGINS = ("auth", "password", "identitytoken", "registrytoken")
_KUBERNETES = "a Kubernetes Secret"
_PRIVATE_KEY = "a private key"
"""A file with the name of a private key may hold a certificate or a public key instead."""
_KUBERNETES_SECRET = re.compile(rb"(?m)^kind:[ \t]*[\"']?Secret\b")
_DATA = rb"(?:data|stringData):[ \t]*(?:\{[ \t]*[^\s{}]|\r?\n(?:[ \t]*#.*\n)*[ \t]+[^\s:#]+:[ \t]*[^\s{])"
_SECRET_DATA = re.compile(rb"(?m)^" + _DATA)
_LIST = re.compile(rb"(?m)^kind:[ \t]*[\"']?(?:Secret)?List\b")
_LISTED_SECRET = re.compile(rb"(?m)^[ \t-]*+kind:[ \t]*[\"']?Secret\b")
_LISTED_DATA = re.compile(rb"(?m)^[ \t-]*+" + _DATA)
_YAML = (".yaml", ".yml")
_DOCUMENT_END = re.compile(rb"(?m)^---")
_PUBLIC_PEM = re.compile(
    rb"(?m)^-----BEGIN (?:TRUSTED )?(?:CERTIFICATE|X509 CRL|(?:RSA )?PUBLIC KEY|(?:DH|EC) PARAMETERS)-----[ \t]*\r?\n"
    rb"[A-Za-z0-9+/=]{8}"
)
_ANY_PRIVATE_PEM = re.compile(rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY")


def find_secret(path: str, content: bytes) -> FoundSecret | None:
    """Return why the file at the relative `path` holds a password, a token or a key; None where nothing says so."""
    text = as_text(content)
    title = find_secret_name(path)
    if title and not (title == _PRIVATE_KEY and _is_public(text)):
        return FoundSecret(title)
    return find_secret_content(path, text)


def find_chart_secret(path: str, content: bytes) -> FoundSecret | None:
    """Return why the file of a chart holds a secret, as find_secret does.

    A template may be called whatever it makes, such as `secret.yaml`, and may make a Secret of what it is given.
    """
    if "templates" in path.split("/")[:-1] or path.endswith((".yaml", ".yml")):
        return find_secret_content(path, as_text(content))
    return find_secret(path, content)


def find_secret_name(path: str) -> str:
    """Return what a file of this name, or what it is a copy of, holds by all experience; empty where nothing tells."""
    lowered = path.lower()
    names = (lowered, *find_originals(lowered))
    if any(_matches_any(HARMLESS_NAMES, name) for name in names):
        return ""
    kinds = SECRET_NAMES.items()
    return next((title for name in names for title, patterns in kinds if _matches_any(patterns, name)), "")


def find_secret_content(path: str, content: bytes) -> FoundSecret | None:
    """Return the secrets inside a file, whatever its name; None where there are none, or too much to search."""
    if store := _STORES.get(content[:4]):
        return FoundSecret(store, 1)
    if len(content) > (_LARGEST_NOTEBOOK if path.lower().endswith(".ipynb") else _LARGEST):
        return None
    if lines := _find_forms(content):
        (line, title), *others = sorted(lines.items())
        return FoundSecret(title, line, tuple(others))
    if title := _find_in_json(content):
        return FoundSecret(title, 1)
    if _is_kubernetes_secret(content) or (_may_be_rendered(path) and _gives_secret(content)):
        return FoundSecret(_KUBERNETES, 1)
    lowered = path.lower()
    may_be_token = any(_matches_any(TOKEN_NAMES, name) for name in (lowered, *find_originals(lowered)))
    if may_be_token and re.fullmatch(rb"\s*[!-~]{8,512}\s*", content):
        return FoundSecret("a token", 1)
    return None


def _find_forms(content: bytes) -> dict[int, str]:
    """Return what stands in a line, by its number; of several forms that match there, the first."""
    lines: dict[int, str] = {}
    for form in _FORMS:
        if not any(mark in content for mark in form.marks):
            continue
        line, end = 1, 0
        for found in form.pattern.finditer(content):
            line, end = line + content.count(b"\n", end, found.start()), found.start()
            lines.setdefault(line, form.title)
    return lines


def dump_docker_ignore() -> str:
    """Return the .dockerignore that leaves out what find_secret_name knows, for builds without this program."""
    names = [pattern.rstrip("/") for held in SECRET_NAMES.values() for pattern in held]
    copies = dict.fromkeys(copy for name in names for copy in list_copy_patterns(name) if copy not in names)
    patterns = [f"**/{_any_case(name)}" for name in (*names, *ANY_COPY, *copies)]
    shared = [f"!**/{_any_case(pattern)}" for pattern in HARMLESS_NAMES]
    head = "# Passwords and keys, by the names in generator/trainchart/secret_names.py; a test compares the two."
    return "\n".join((head, *patterns, *shared, ""))


def _any_case(pattern: str) -> str:
    return "".join(f"[{char}{char.upper()}]" if char.isalpha() else char for char in pattern)


def as_text(content: bytes) -> bytes:
    """Return what PowerShell's `>` writes, which is UTF-16, as UTF-8; anything else unchanged."""
    if content[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        return content
    return content[: 2 * _LARGEST].decode("utf-16", errors="replace").encode()


def _is_public(content: bytes) -> bool:
    """Tell whether a file in PEM holds certificates or public keys, and nothing private."""
    return _PUBLIC_PEM.search(content) is not None and _ANY_PRIVATE_PEM.search(content) is None


def _find_in_json(content: bytes) -> str:
    """Return what a JSON file that some service hands out is: a key, or the tokens of a login."""
    if not any(mark in content for mark in _JSON_MARKS):
        return ""
    try:
        document = parse_json(content)
    except ValueError:
        return ""
    return _find_in_document(document) if isinstance(document, dict) else ""


def _find_in_document(document: dict[str, Any]) -> str:
    if document.get("type") == "service_account" and "PRIVATE KEY-----" in str(document.get("private_key")):
        return "a private key"
    if any("kty" in key and len(str(key.get("d", ""))) >= 40 for key in (document, *_mappings(document, "keys"))):
        return "a private key"
    if any(host.get(name) for host in _mappings(document, "auths") for name in _REGISTRY_LOGINS):
        return "the login of a registry"
    objects = (document, *_mappings(document, "items"))
    if any(each.get("kind") == "Secret" and (each.get("data") or each.get("stringData")) for each in objects):
        return _KUBERNETES
    if document.keys() == {"username", "key"} and re.fullmatch("[0-9a-f]{32}", str(document["key"])):
        return "a token of a machine learning service"
    for client in (document, *_mappings({"": [document.get("installed"), document.get("web")]}, "")):
        secret = str(client.get("client_secret") or client.get("refresh_token") or "")
        if "client_id" in client and len(secret) >= 16:
            return "the login of a cloud"
    return ""


def _mappings(document: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the mappings in the list or mapping called `name`; none where it is something else."""
    held = document.get(name)
    entries = held.values() if isinstance(held, dict) else held if isinstance(held, list) else ()
    return [entry for entry in entries if isinstance(entry, dict)]


def _is_kubernetes_secret(content: bytes) -> bool:
    """Tell whether YAML holds a Secret with values of its own; a template takes them from elsewhere."""
    if b"Secret" not in content:
        return False
    documents = (text for text in _DOCUMENT_END.split(content) if b"{{" not in text)
    return any(map(_is_secret_document, documents))


def _may_be_rendered(path: str) -> bool:
    """Tell whether a file is YAML, or a template that Helm makes YAML of, whatever its ending."""
    *folders, name = path.split("/")
    return name.endswith(_YAML) or ("templates" in folders and name != "NOTES.txt" and not name.startswith("_"))


def _gives_secret(content: bytes) -> bool:
    """Return whether a template or a YAML file of any style holds a literal value of a Secret."""
    if b"Secret" not in content:
        return False
    plain = replace_actions(content).decode(errors="replace")
    try:
        documents = parse_documents(plain)
    except YamlError:
        documents = ()
    objects = [each for each in documents if isinstance(each, dict)]
    listed = [below for each in objects for below in _mappings(each, "items")]
    secrets = [each for each in (*objects, *listed) if each.get("kind") == "Secret"]
    pairs = [pair for each in secrets for part in ("data", "stringData") for pair in _pairs(each.get(part))]
    is_template = plain.encode() != content
    if is_template:  # what stands in two branches is one key twice, and YAML keeps the last
        pairs += read_secret_lines(plain)
    # Many keys may share one value.
    texts = {value: restore_literals(value) for value in {value for _, value in pairs}}
    named = {texts[value] for key, value in pairs if not is_template or is_secret_name(key)}
    return any(text and GIVEN_LATER not in text for text in named) or any(map(_holds_secret, texts.values()))


def _holds_secret(value: str) -> bool:
    """Return whether a value of a Secret, perhaps in base64, holds a secret by its form, whatever its name."""
    if holds_login(value.replace(GIVEN_LATER, "${later}")):
        return True
    if GIVEN_LATER in value:
        return False
    try:
        decoded = base64.b64decode(value, validate=True)
    except ValueError:
        decoded = b""
    if holds_login(decoded.decode(errors="replace")):
        return True
    return any(_find_forms(text) or _find_in_json(text) for text in (value.encode(errors="replace"), decoded))


def _pairs(held: Any) -> list[tuple[str, str]]:
    items = held.items() if isinstance(held, dict) else ()
    # Quotes may be missing around a number; as an object, it would be refused.
    values = ((str(key), value) for key, value in items if not isinstance(value, bool))
    return [(key, str(value)) for key, value in values if isinstance(value, (str, int, float))]


def _is_secret_document(text: bytes) -> bool:
    if _LIST.search(text):  # the values may be those of a ConfigMap beside the Secret; refusing both is safe
        return bool(_LISTED_SECRET.search(text) and _LISTED_DATA.search(text))
    return bool(_KUBERNETES_SECRET.search(text) and _SECRET_DATA.search(text))


def _matches_any(patterns: tuple[str, ...], path: str) -> bool:
    return _compile(patterns).fullmatch(path) is not None


@functools.cache
def _compile(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(_translate, patterns)))


def _translate(pattern: str) -> str:
    """Return the regular expression of the whole paths that a pattern of secret_names.py matches."""
    body = "".join({"*": "[^/]*", "?": "[^/]"}.get(char, re.escape(char)) for char in pattern.rstrip("/"))
    return f"(?:.*/)?{body}" + ("/.*" if pattern.endswith("/") else "")
