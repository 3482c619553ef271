"""Rules about hooks, helm test, notes, and objects that need more than Kubernetes itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainchart.check.finding import CheckInput, Finding, Severity
from trainchart.check.objects import HOOK_ANNOTATION, called, find_pods, mapping_at
from trainchart.check.pod_templates import group_of
from trainchart.check.rule import Rule, Scope
from trainchart.check.rules.cases import for_each_rendering
from trainchart.check.sources import NOTES_FILE, chart_file, read_source
from trainchart.helm.rendering import Manifest, Rendering

_POINTS = {"install", "upgrade", "delete", "rollback"}
_HOOKS = {f"{when}-{point}" for when in ("pre", "post") for point in _POINTS} | {"test", "test-success"}
_POLICIES = {"before-hook-creation", "hook-succeeded", "hook-failed"}
_POLICY_ANNOTATION = "helm.sh/hook-delete-policy"
_OLD_FLAGS = {
    "--atomic": "--rollback-on-failure",
    "--force": "--force-replace",
    "--wait=true": "--wait",
    "--generate-name=true": "--generate-name",
    "--tiller-namespace": "nothing",
    "--purge": "nothing",
}
_NOTES_LIMIT = 40


@for_each_rendering
def check_hooks(rendering: Rendering) -> Iterator[Finding]:
    """Find hook names and policies that Helm does not know, and test hooks that stay behind."""
    for manifest in rendering.manifests:
        annotations = mapping_at(manifest.document, "metadata", "annotations")
        hooks, policies = (_words(annotations.get(key)) for key in (HOOK_ANNOTATION, _POLICY_ANNOTATION))
        if HOOK_ANNOTATION in annotations and "" in str(annotations[HOOK_ANNOTATION] or "").replace(" ", "").split(","):
            yield Finding(
                f"{called(manifest)}: {HOOK_ANNOTATION} names no hook, so Helm does not create the object",
                path=manifest.source,
                line=manifest.line,
            )
        for unknown in sorted(hooks - _HOOKS):
            yield Finding(
                f"{called(manifest)}: Helm does not know the hook {unknown!r}",
                path=manifest.source,
                line=manifest.line,
                hint="put the definition into crds/" if unknown == "crd-install" else "",
            )
        for unknown in sorted(policies - _POLICIES):
            yield Finding(
                f"{called(manifest)}: Helm does not know the hook-delete-policy {unknown!r}",
                path=manifest.source,
                line=manifest.line,
            )
        if hooks and not policies & {"before-hook-creation"} and _POLICY_ANNOTATION in annotations:
            yield Finding(
                f"{called(manifest)}: after a failure, the old object is in the way of its next run",
                path=manifest.source,
                line=manifest.line,
                hint=f"{_POLICY_ANNOTATION}: before-hook-creation,hook-succeeded",
            )


def check_test_hook(given: CheckInput) -> Iterator[Finding]:
    """Check that `helm test` has something to do, and cleans up."""
    for case in given.cases[:1]:
        if case.rendering is None or chart_file(given).get("type") == "library":
            continue
        tests = [manifest for manifest in case.rendering.manifests if _is_test(manifest)]
        if not tests and any(True for _ in find_pods(case.rendering)):
            yield Finding("has no test for helm test", path="templates/tests", severity=Severity.warning)
        for manifest in tests:
            if _POLICY_ANNOTATION not in mapping_at(manifest.document, "metadata", "annotations"):
                yield Finding(
                    f"{called(manifest)} stays behind after helm test",
                    path=manifest.source,
                    line=manifest.line,
                    hint=f"{_POLICY_ANNOTATION}: before-hook-creation,hook-succeeded",
                )


def check_notes(given: CheckInput) -> Iterator[Finding]:
    """Check that NOTES.txt is there, is short and names no flag that Helm 4 dropped."""
    text = read_source(given, NOTES_FILE)
    if not text.strip():
        if chart_file(given).get("type") != "library":
            yield Finding("there are no notes", path=NOTES_FILE, severity=Severity.warning)
        return
    for number, line in enumerate(text.splitlines(), start=1):
        for flag, instead in _OLD_FLAGS.items():
            if re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w=-])", line):
                yield Finding(f"names {flag}, which Helm 4 calls {instead}", path=NOTES_FILE, line=number)
    for label, rendering in given.renderings():
        length = len(rendering.notes.strip().splitlines())
        if length > _NOTES_LIMIT:
            yield Finding(
                f"prints {length} lines, more than the {_NOTES_LIMIT} that users read", path=NOTES_FILE, values=label
            )


def check_custom_resources(given: CheckInput) -> Iterator[Finding]:
    """Find objects of other API groups that are rendered though no setting says that the cluster has them."""
    groups = {schemas.version: schemas for schemas in given.kinds or given.kubernetes}
    if not groups:
        return
    newest = list(groups.values())[-1]
    for case in given.cases[:1]:
        manifests = case.rendering.manifests if case.rendering else ()
        own = {
            mapping_at(manifest.document, "spec").get("group")
            for manifest in manifests
            if manifest.kind == "CustomResourceDefinition"
        }
        for manifest in manifests:
            group = group_of(manifest)
            if not newest.has_group(group) and group not in own:
                yield Finding(
                    f"{called(manifest)} needs the API {group}, which a plain cluster does not have",
                    path=manifest.source,
                    line=manifest.line,
                    hint=f"render it only behind a value and .Capabilities.APIVersions.Has {group}/…",
                )


def _is_test(manifest: Manifest) -> bool:
    return bool(
        _words(mapping_at(manifest.document, "metadata", "annotations").get(HOOK_ANNOTATION)) & {"test", "test-success"}
    )


def _words(annotation: object) -> set[str]:
    return {word.strip().lower() for word in str(annotation or "").split(",") if word.strip()}


RULES = (
    Rule(
        "hooks",
        "Helm ignores a misspelt hook, or treats it as an ordinary object.",
        check_hooks,
        "https://helm.sh/docs/topics/charts_hooks/",
    ),
    Rule(
        "helm-test",
        "helm test shows users that the release works.",
        check_test_hook,
        "https://helm.sh/docs/topics/chart_tests/",
        others=Severity.info,
        scope=Scope.charts,
    ),
    Rule(
        "notes",
        "The notes are the only documentation that every user sees.",
        check_notes,
        "https://helm.sh/docs/chart_template_guide/notes_files/",
        severity=Severity.warning,
        others=Severity.info,
        scope=Scope.charts,
    ),
    Rule(
        "custom-resources",
        "An installation fails if the cluster lacks the API of one of its objects.",
        check_custom_resources,
        "https://helm.sh/docs/chart_best_practices/custom_resource_definitions/",
        others=Severity.info,
        scope=Scope.charts,
    ),
)
