"""Texts of others, however long and odd, are searched in a time that grows with their length alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from tests.support.console_reports import make_report
from trainchart.archive.lock import Lock, Source, dump_lock
from trainchart.archive.provenance import read_clear_text
from trainchart.check.finding import CheckInput
from trainchart.check.probes import large_numbers, next_version
from trainchart.check.randomness import find_random_calls, makes_random
from trainchart.check.registry import find_rules
from trainchart.check.runner import run_checks
from trainchart.cluster.running_logs import describe_short_data
from trainchart.errors import PlanError
from trainchart.helm.errors import render_error
from trainchart.helm.manifests import separate_as_helm
from trainchart.host.gpg import check_signed_text
from trainchart.images.requirements import parse_requirements, require_no_logins
from trainchart.importing.shell import find_variables
from trainchart.kubernetes_yaml import YamlError, parse_mapping
from trainchart.reports.hangs import explain_refusals
from trainchart.reports.log_line import LogLine
from trainchart.schema_validation import end_as_go
from trainchart.secret_files import find_secret_content
from trainchart.secret_masks import mask_command
from trainchart.secret_names import hide_logins, holds_command_login
from trainchart_runtime.contract import LAUNCHER_PREFIX

LENGTH = 600_000
SHARED = ", ".join(f"{number}_pw: *a" for number in range(20_000))
MARK = "# trainchart: ignore[keys-unique] x\n"
ENTRIES = f"a: [{'1, ' * 1_500_000}1]\n"
INCLUDES = "".join(
    f'{{{{ define "{a}" }}}}{{{{ include "{a + 1}" . }}}}{{{{ include "{a + 2}" . }}}}{{{{ end }}}}'
    for a in range(2000)
)
COLONS = "a:" * (LENGTH // 2)


def repeat(piece: str) -> str:
    return piece * (LENGTH // len(piece))


def make_chart(template: str) -> CheckInput:
    return CheckInput(files={"templates/a.yaml": template.encode()})


def find_in_template(text: str) -> None:
    content = f"kind: Secret\nmetadata: {{name: {{{{ .Release.Name }}}}}}\ndata: {{a: {text}}}\n"
    find_secret_content("a.yaml", content.encode())


def accept(text: str, values: str = "") -> None:
    files = {"templates/a.yaml": text.encode(), "values.yaml": values.encode()}
    run_checks(CheckInput(files), find_rules(("keys-unique", "waivers")))


def find_in_lines(text: str) -> None:
    content = f"kind: Secret\na: {{{{ a }}}}\n  b: c\ndata:\n{text}\n"
    find_secret_content("a.yaml", content.encode())


def make_lock(sha256: str) -> Lock:
    return Lock("0.1.0", Source("a.yaml", ""), Source("a", ""), (), {"a": sha256})


def explain(text: str) -> None:
    line = LogLine("", "worker-0", f"trainchart-launcher: waiting for {text}")
    list(explain_refusals(replace(make_report(), last_lines=(line,))))


def say(text: str) -> None:
    lines = [LogLine("", label, f"{LAUNCHER_PREFIX}{text}") for label in ("worker-0", "worker-1")]
    list(describe_short_data([[line] for line in lines]))


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("search", "text"),
    [
        (separate_as_helm, "a: 1\n" + repeat("\t \n") + "x"),
        (lambda text: next_version(make_chart(text)), repeat("a")),
        (lambda text: next_version(make_chart(text)), repeat("a.")),
        (lambda text: large_numbers(make_chart(text)), repeat("until ")),
        (lambda text: makes_random(make_chart(text)), repeat("{")),
        (lambda text: makes_random(make_chart(text)), "{{ " + repeat('"a" ') + '"'),
        (lambda text: makes_random(make_chart(text)), f"{{{{ {repeat(chr(92) + chr(34))} }}}}"),
        (lambda text: makes_random(make_chart(text)), "{{now}}\n" * 200_000),
        (lambda text: makes_random(make_chart(text)), repeat("{{/*")),
        (
            lambda text: [call.is_guarded for call in find_random_calls(make_chart(text))],
            f'{INCLUDES}{{{{ define "2000" }}}}{{{{ now }}}}{{{{ end }}}}',
        ),
        (accept, MARK * 160_000),
        (lambda text: accept(text, "a: 1\n" * 10_000), MARK * 10_000),
        (lambda text: accept("", text), f"{MARK}{ENTRIES}"),
        (accept, repeat("# trainchart: ignore[")),
        (accept, f"{MARK[:-1]}{repeat(' ')}y"),
        (lambda text: mask_command([text]), repeat("a")),
        (lambda text: mask_command([text]), COLONS),
        (lambda text: hide_logins(text, "***"), repeat("a")),
        (holds_command_login, repeat("curl ")),
        (holds_command_login, repeat("mariadb-")),
        (holds_command_login, "mc " + repeat("-a ")),
        (holds_command_login, repeat("mc -a ")),
        (holds_command_login, "mc " + repeat("-mc ")),
        (holds_command_login, "aws configure set " + repeat("secret")),
        (lambda text: find_secret_content("a.yaml", text.encode()), repeat("a: -----BEGIN PRIVATE KEY-----\n")),
        (lambda text: find_secret_content("a.yaml", text.encode()), f"kind: Secret\n{repeat('{{a}} ')}x\n"),
        (lambda text: find_secret_content("a.yaml", text.encode()), f"kind: Secret\n{repeat('{{')}"),
        (find_in_lines, repeat("  a: |\n")),
        (find_in_lines, f"  a: |{repeat(chr(10))}"),
        (find_in_lines, f"data: {{{repeat('{a: ' + chr(34))}"),
        (find_in_template, f"{{{{ {repeat(chr(92) + chr(34))} }}}}"),
        (find_in_template, f"{{{{ {repeat('(')} }}}}"),
        (find_in_template, f"{{{{ {repeat('|')} }}}}"),
        (find_in_template, f"{{{{ {repeat('()')} }}}}"),
        (find_in_template, f"&a {repeat('https:')[: LENGTH // 2]}{{{{ x }}}}, {SHARED}"),
        (lambda text: read_clear_text(text.encode()), repeat("-----BEGIN PGP SIGNED MESSAGE-----\n\n")),
        (lambda text: read_clear_text(text.encode()), repeat("-----BEGIN PGP SIGNED MESSAGE-----\n")),
        (lambda text: check_signed_text(text.encode(), None), repeat("-----BEGIN PGP SIGNED MESSAGE-----\n\n")),
        (lambda text: dump_lock(make_lock(text)), f"{repeat('a')}g"),
        (parse_requirements, "a==1" + repeat(" ") + "!"),
        (lambda text: require_no_logins(text, "requirements.txt"), repeat("a")),
        (lambda text: render_error(text, "chart"), f"Error: {repeat('a')}"),
        (lambda text: render_error(text, "chart"), f"Error: a{repeat(chr(10))}b"),
        (lambda text: render_error(text, "chart"), f"Error: {repeat('a/templates/a')}"),
        (lambda text: render_error(text, "chart"), f"Error: {repeat('key ' + chr(34))}"),
        (parse_mapping, f"a: 0{repeat('_')}x"),
        (parse_mapping, f"a: 1E{repeat('_')}x"),
        (parse_mapping, f"a: -.0E{repeat('_')}x"),
        (parse_mapping, "".join(f"%TAG !{number}! x\n" for number in range(200_000)) + "---\na: 1\n"),
        (say, repeat("attempt 0 ended ")),
        (end_as_go, repeat("[")),
        (find_variables, repeat("${")[: LENGTH // 4]),
        (explain, repeat("a")),
    ],
    ids=[
        *(
            "separate",
            "revision",
            "revision-dots",
            "count",
            "random",
            "random-quotes",
            "random-escapes",
            "random-lines",
            "comment",
            "random-includes",
            "waivers",
            "waivers-findings",
            "waivers-large",
            "waivers-open",
            "waivers-reason",
            "mask",
            "mask-colons",
        ),
        *("logins", "command-logins", "command-logins-names", "command-logins-flags", "command-logins-words"),
        *("command-logins-mc", "command-logins-aws", "private-keys", "actions", "open-actions"),
        *("secret-blocks", "secret-blank-lines", "secret-braces"),
        *("action-quotes", "action-open", "action-pipes", "action-parentheses", "shared-value"),
        *("signed-text", "signed-text-headers", "signature", "hash"),
        *("requirements", "requirements-logins", "render-error", "render-error-lines", "render-error-places"),
        *(
            "render-error-keys",
            "integer",
            "exponent",
            "exponent-signed",
            "tag-handles",
            "success",
            "pattern",
            "variables",
            "refusals",
        ),
    ],
)
def test_long_texts_are_searched_fast(search: Callable[[str], object], text: str) -> None:
    with suppress(PlanError, YamlError):
        search(text)
