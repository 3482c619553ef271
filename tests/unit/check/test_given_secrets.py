"""Passwords that the values of a chart give to variables, to flags and in Secrets, and what only looks like one."""

from __future__ import annotations

import gzip

import pytest

from trainchart.archive import subcharts
from trainchart.archive.identity import build_tar
from trainchart.check.finding import CheckInput
from trainchart.check.rules.archive import check_no_secrets

SECRET = "extraManifests: [{kind: Secret, metadata: {name: db}, %s}]\n"


def find(values: str, path: str = "values.yaml") -> list[str]:
    given = CheckInput({"Chart.yaml": b"name: a\n", path: values.encode()})
    return [finding.message.partition(",")[0] for finding in check_no_secrets(given)]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ("command: [python, a.py, --api-key, Zk39vLq0]\n", "api-key is given as plain text"),
        ("args: [--verbose, --hub.token, Zk39vLq0]\n", "hub.token is given as plain text"),
        ("args: [sh, -c, \"a --verbose --password 'Zk39vLq0' --b\"]\n", "password is given as plain text"),
        ("command: python a.py --api-key=Zk39vLq0\n", "api-key is given as plain text"),
        ("env: {KAGGLE_KEY: Zk39vLq0}\n", "KAGGLE_KEY is given as plain text"),
        ("hyperparameters: {hubApiKey: Zk39vLq0}\n", "hubApiKey is given as plain text"),
        ("env: {PGPASSWORD: Zk39vLq0}\n", "PGPASSWORD is given as plain text"),
        ("env: {API_KEY_2: Zk39vLq0}\n", "API_KEY_2 is given as plain text"),
        ("args: [--hubToken1, Zk39vLq0]\n", "hubToken1 is given as plain text"),
        ("initContainers: [{env: [{name: S3_SECRET_KEY, value: Zk39vLq0}]}]\n", "S3_SECRET_KEY is given as plain text"),
        ("env: {DATABASE: 'postgres://me:Zk39vLq0@db/x'}\n", "env.DATABASE has an address with a password or token"),
        ("args: [--url, 'postgres://me:Zk39vLq0@db/x']\n", "args.1 has an address with a password or token"),
        ("data: {source: 'https://x/a?sig=Zk39vLq0'}\n", "data.source has an address with a password or token"),
        ("args: [sh, -c, 'curl -sf -u me:Zk39vLq0 http://a']\n", "args gives a password as plain text"),
        (
            "initContainers: [{command: [redis-cli, -a, Zk39vLq0, ping]}]\n",
            "initContainers.0.command gives a password",
        ),
        (SECRET % "stringData: {password: Zk39vLq0}", "the Secret db is given with its values"),
        (SECRET % "data: {password: Wms5dkxxMA==}", "the Secret db is given with its values"),
    ],
)
def test_a_secret_in_values_is_found(values: str, found: str) -> None:
    for path in ("values.yaml", "values-prod.yaml", "charts/sub/values.yaml"):
        assert [each.startswith(found) for each in find(values, path)] == [True]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"a: 1\n---\nenv: {API_KEY: Zk39vLq0}\n", 0),
        (b"a: !\nenv:\n  API_KEY: Zk39vLq0\n", 3),
        (b"a: [\nenv:\n  - API_KEY: 'Zk39vLq0'\n", 3),
        ("env: {API_KEY: Zk39vLq0}\n".encode("utf-16"), 1),
    ],
    ids=["of a second document", "beside a lone tag", "that is no YAML", "in UTF-16"],
)
def test_a_secret_in_values_of_any_form_is_found(content: bytes, line: int) -> None:
    for path in ("values.yaml", "values-prod.yaml"):
        *_, finding = check_no_secrets(CheckInput({path: content}))
        assert (finding.message.partition(",")[0], finding.line) == ("API_KEY is given as plain text", line)


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("x: ! y\nenv: {DB_PASSWORD: hunter2}\n", 1, "was searched for passwords only by lines: a lone !"),
        ("env: {DB_PASSWORD: hunter2}\nenv: {}\n", 2, "has the key env twice, of which only the last was searched"),
    ],
)
def test_values_that_are_not_searched_whole_are_named(content: str, line: int, message: str) -> None:
    for path in ("values-prod.yaml", "ci/a-values.yaml", "charts/sub/values.yaml"):
        (finding,) = check_no_secrets(CheckInput({path: content.encode()}))
        assert (finding.message.startswith(message), finding.line) == (True, line)
    assert find(content) == [], "the rules values-schema and keys-unique name it"


def test_packed_subcharts_that_are_too_large_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subcharts, "_SIZE_LIMIT", 1000)
    packed = {
        f"charts/{name}.tgz": gzip.compress(build_tar(name, {"Chart.yaml": b"name: a\n", "data": bytes(size)}))
        for name, size in (("small", 100), ("large", 2000))
    }
    found = list(check_no_secrets(CheckInput({**packed, "charts/broken.tgz": b"x"})))
    assert [finding.path for finding in found] == ["charts/broken.tgz", "charts/large.tgz"]
    assert {finding.message for finding in found} == {
        "was not searched for passwords: it is too large, or cannot be read"
    }


def finds_in_secret(pair: str) -> bool:
    template = (
        'kind: Secret\nmetadata: {name: {{ .Release.Name }}-db}\ntype: "{{ .Values.kind | default "Opaque" }}"\n'
        f'{{{{- if eq .Values.mode "production" }}}}\nstringData:\n  {pair}\n{{{{- end }}}}\n'
    )
    return bool(list(check_no_secrets(CheckInput({"templates/db.yaml": template.encode()}))))


@pytest.mark.parametrize(
    "pair",
    [
        'password: {{ "hunter2-prod" | b64enc }}',
        "password: {{ `hunter2-prod` | quote }}",
        'password: {{- b64enc "hunter2-prod" -}}',
        'password: {{ .Values.pw | default "hunter2-prod" | b64enc | quote }}',
        'password: {{ default "hunter2-prod" .Values.pw }}',
        'password: {{ (coalesce .Values.a .Values.b "hunter2-prod") | toString | nindent 4 }}',
        'password: {{ include "x" . | default ("hunter2-prod" | trim) }}',
        'password: "hunter2-prod{{ "" }}"',
        "password: hunter2-prod{{/* as agreed */}}",
        'password: {{ .Values.pw | or "hunter2-prod" }}',
        'password: {{ or .Values.pw "hunter2-prod" | b64enc }}',
        "{{ if .Values.pw }}password: hunter2-prod{{ end }}",
        "{{ if .a }}password: hunter2-prod{{ end }}\n  {{ if .b }}user: {{ .Values.user }}{{ end }}",
        "{{- if .a }}\n  password: hunter2-prod\n  {{- else }}\n  password: {{ .Values.pw }}\n  {{- end }}",
        '{{- if .a }}\n  password: {{ "hunter2-prod" }}\n  {{- else }}\n  password: {{ .Values.pw }}\n  {{- end }}',
        "password: 12345678",
        "DB_PASS: hunter2-prod",
        "DATABASE_URL: postgres://app:hunter2-prod@db/x",
        "DATABASE_URL: postgres://app:hunter2-prod@{{ .Values.host }}/x",
        "DATABASE_URL: cG9zdGdyZXM6Ly9hcHA6aHVudGVyMi1wcm9kQGRiL3g=",
        'DATABASE_URL: {{ "postgres://app:hunter2-prod@db/x" | b64enc }}',
        ".dockerconfigjson: eyJhdXRocyI6eyJyLmV4YW1wbGUuY29tIjp7ImF1dGgiOiJZV1J0YVc0NmFIVnVkR1Z5TWc9PSJ9fX0=",
        """.dockerconfigjson: '{"auths": {"r.example.com": {"auth": "YWRtaW46aHVudGVyMg=="}}}'""",
    ],
)
def test_a_literal_in_a_secret_of_a_template_is_found(pair: str) -> None:
    assert finds_in_secret(pair)


@pytest.mark.parametrize(
    "pair",
    [
        "password: {{ .Values.password | b64enc | quote }}",
        "password: {{ randAlphaNum 16 | b64enc }}",
        'password: {{ include "x.secret" . }}',
        'password: {{ required "set password" .Values.password }}',
        'password: {{ .Values.password | required "set password" | b64enc }}',
        'password: {{ printf "%s-%s" .a .b }}',
        'password: {{ printf "%s-%s" (default "db" .Values.name) .b }}',
        'password: {{ .Values.pw | default "" }}',
        'token: "Bearer {{ .Values.token | default "" }}"',
        "password: {{ default (randAlphaNum 10) .Values.pw }}",
        'password: {{ .Values.pw | default "${PASSWORD}" }}',
        'password: {{ derivePassword 1 "long" .Values.pw "user" "example.com" }}',
        'password: {{ get (lookup "v1" "Secret" .Release.Namespace "db").data "password" | default (randAlphaNum 9) }}',
        'password: {{ .Files.Get "password" | b64enc }}',
        'password: {{ include "x" (dict "key" (default "password" .Values.key) "context" $) }}',
        'password: {{ if eq .Values.mode "production" }}{{ .Values.pw }}{{ end }}',
        'password: {{ if .a }}"{{ .Values.pw }}"{{ else }}"{{ .Values.b }}"{{ end }}',
        "password: {{ .Values.a | or .Values.b | or }}",
        "{{ if .Values.pw }}password: {{ .Values.pw }}{{ end }}",
        "creds: |\n    [default]\n    key={{ .Values.key }}",
        "ssh_token: |\n{{ .Values.token | indent 4 }}\n  user: app",
        "app.yaml: |\n    password: hunter2-prod",
        'user: {{ .Values.user | default "admin" }}',
        "user: app",
        "proxy_pass: web",
        "FORWARD_PASS: fast",
        "DATABASE_URL: postgres://app:{{ .Values.password }}@db/x",
        'DATABASE_URL: {{ printf "postgres://app:%s@db/x" .Values.password | b64enc }}',
        """.dockerconfigjson: '{"auths": {"r.example.com": {"auth": "{{ .Values.auth }}"}}}'""",
        ".dockerconfigjson: eyJhdXRocyI6IHt9fQ==",
        "password: {{ ( }}",
        'password: {{ | default "" ) }}',
        "password: trainchart-literal--",
    ],
)
def test_a_secret_of_a_template_may_take_its_values_elsewhere(pair: str) -> None:
    assert not finds_in_secret(pair)


@pytest.mark.parametrize(
    ("template", "is_found"),
    [
        ("kind: Secret\nstringData:\n  password: Zk39vLq0\n", True),
        ("kind: Role\nname: {{ .Release.Name }}\n---\nkind: Secret\nstringData: {password: Zk39vLq0}\n", True),
        (
            "kind: Secret\nname: '{{ .Release.Name }}'\nstringData: {password: '{{ .Values.a }}'}\n",
            False,
        ),
        ("kind: Secret\nmetadata: {name: '{{ .Release.Name }}-db'}\nstringData:\n\n  password: hunter2hunter2\n", True),
        ("{kind: Secret, stringData: {password: hunter2hunter2}}\n", True),
        ("'kind': 'Secret'\n'stringData':\n  'password': hunter2hunter2\n", True),
        (
            "{{- if .Values.a }}\nkind: Secret\nstringData:\n  a: b\n  password: {{ .Values.b }}\n{{- end }}\n",
            False,
        ),
        ("kind: Secret\nmetadata: {name: token}\ntype: kubernetes.io/service-account-token\n", False),
    ],
)
def test_a_template_with_a_secret_of_its_own_is_found(template: str, *, is_found: bool) -> None:
    found = list(check_no_secrets(CheckInput({"templates/secret.yaml": template.encode()})))
    assert [each.message.partition(",")[0] for each in found] == ["holds a Kubernetes Secret"] * is_found


NOT_YAML = """
kind: Secret
metadata:
  labels: {{- include "x" . | nindent 4 }}
    app: web
"""


def finds_in_lines(text: str, path: str = "templates/db.yaml") -> bool:
    return bool(list(check_no_secrets(CheckInput({path: text.encode()}))))


@pytest.mark.parametrize(
    "data",
    [
        "stringData:\n  user: app\n\n  # as agreed\n  'password': \"hunter2-prod\"  # a comment\n",
        'data:\n  password: {{ .Values.pw | default "hunter2-prod" | b64enc }}\r\n',
        "stringData:\n  password: |-\n    hunter2-prod\n\n  user: app\n",
        "stringData: {user: app, password: hunter2-prod}\n",
        "stringData:\n  url: postgres://app:hunter2-prod@db/x\n",
        "stringData:\n  password: {{ .Values.pw }}\n---\nkind: Secret\nstringData:\n  password: hunter2-prod\n",
    ],
)
def test_a_secret_of_a_template_that_is_not_yaml_is_found(data: str) -> None:
    assert finds_in_lines(NOT_YAML + data)
    assert finds_in_lines((NOT_YAML + data).replace("\n", "\r\n"))
    items = "\n".join(("  " if line else "") + line for line in (NOT_YAML + data).split("\n"))
    assert finds_in_lines("kind: List\nitems:\n" + items.replace("  kind", "- kind", 1))


@pytest.mark.parametrize(
    "data",
    [
        "stringData:\n  password: {{ .Values.pw }}\n",
        "stringData:\n  password: '{{ .Values.pw }}'  # from values\n",
        "stringData:\n  user: app\ntoken: abcdefg\n",
        "stringData: {user: app, password: {{ .Values.pw }}}\n",
        "stringData:\n  password: ''\n  token:\n  key: {}\n",
        "stringData:\n  app.yaml: |\n    password: hunter2-prod\n",
        "stringData:\n  creds: |\n    [default]\n    key={{ .Values.key }}\n",
        "---\nkind: ConfigMap\ndata:\n  password: a\n  b: |\n    kind: Secret\n    data:\n      password: a\n",
    ],
)
def test_a_template_that_is_not_yaml_may_take_values(data: str) -> None:
    assert not finds_in_lines(NOT_YAML + data)


@pytest.mark.parametrize("name", ["db.json", "db.tpl", "db.txt", "db", "a/db.txt", "db.YAML"])
def test_templates_of_any_ending_are_searched(name: str) -> None:
    template = "kind: Secret\nmetadata: {name: {{ .Release.Name }}}\nstringData:\n  password: %s\n"
    assert finds_in_lines(template % "hunter2-prod", f"templates/{name}")
    assert finds_in_lines(template % "hunter2-prod", f"charts/sub/templates/{name}")
    assert not finds_in_lines(template % "{{ .Values.pw }}", f"templates/{name}")
    for path in ("templates/NOTES.txt", "templates/_db.tpl", "docs/db.txt"):
        assert not finds_in_lines(template % "hunter2-prod", path)


def test_a_template_in_json_is_searched() -> None:
    text = '{"kind": "Secret",\n "metadata": {"name": {{ quote .a }}},\n "stringData": {\n  "password": "%s"}}\n'
    assert finds_in_lines(text % "hunter2-prod", "templates/db.json")
    assert not finds_in_lines(text % "{{ .Values.pw }}", "templates/db.json")


@pytest.mark.parametrize(
    "values",
    [
        "command: [python, a.py, --api-key, $(API_KEY), --token=$(TOKEN), --password, /run/password]\n",
        "args: [sh, -c, 'a --password $PASSWORD --token \"${TOKEN}\"']\n",
        "args: [--pad-token, <pad>, --max-token, '4096', --use-auth-token, train.py, --token, --verbose]\n",
        "args: [sh, -c, 'curl -u $NAME:$PASSWORD a; date -u +%H:%M; docker run -p 80:80 a']\n",
        "args: [--no-password, run.py, --use_auth_token, 'true']\n",
        "env: {DATABASE: 'postgres://me:$(PASSWORD)@db', API_TOKEN: {valueFrom: {secretKeyRef: {name: a, key: b}}}}\n",
        "initContainers: [{env: [{name: API_TOKEN, valueFrom: {secretKeyRef: {name: a, key: b}}}]}]\n",
        "env: {SORT_KEY: abcdefg, PAD_TOKEN_2: abcdefg, TOKENS: abcdefg, KEY: abcdefg, '2': abcdefg}\n",
        "hyperparameters: {separatorToken: '[SEP]', sortKey: abcdefg, key: {password: {}}}\n",
        SECRET % "type: Opaque",
        SECRET % "stringData: {release: $(TRAINCHART_RELEASE)}",
        "extraManifests: [{kind: ConfigMap, data: {a: Zk39vLq0}}]\n",
    ],
)
def test_what_gives_no_secret_passes(values: str) -> None:
    assert find(values) == []


@pytest.mark.parametrize("path", ["Chart.yaml", "Chart.lock", "requirements.yaml"])
def test_a_repository_with_a_password_is_found(path: str) -> None:
    dependency = "dependencies:\n- {name: b, version: 1.0.0, repository: 'https://%scharts.example.com'}\n"
    given = CheckInput({path: (dependency % "me:Zk39vLq0@").encode()})
    (finding,) = check_no_secrets(given)
    assert (finding.path, finding.line) == (path, 2)
    assert "has an address with a password or token" in finding.message
    assert not list(check_no_secrets(CheckInput({path: (dependency % "").encode()})))
