"""Rules about what every object must have: a name that its kind may have, and the specification that it is about."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainchart.check.finding import Finding
from trainchart.check.formats import is_dns_label, is_dns_subdomain
from trainchart.check.objects import called, is_of_kubernetes, list_at, mapping_at, pod_template
from trainchart.check.rule import Rule
from trainchart.check.rules.cases import for_each_release, for_each_rendering
from trainchart.rendering import Manifest, Rendering

_SERVICE_NAME = re.compile("[a-z](?:[-a-z0-9]*[a-z0-9])?")
_PATH_NAMED = {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "APIService", "CertificateSigningRequest"}
_PATH_NAMED |= {"ClusterTrustBundle", "IPAddress"}
"""Kinds whose names only have to fit into a URL: system:auth-delegator is one."""
_NAMELESS = {"AdmissionReview", "ConversionReview", "LocalSubjectAccessReview", "SelfSubjectAccessReview"}
_NAMELESS |= {"SelfSubjectReview", "SelfSubjectRulesReview", "SubjectAccessReview", "TokenRequest", "TokenReview"}
"""Kinds that are questions: nothing is stored, so nothing needs a name."""
_WITH_SPEC = {"HorizontalPodAutoscaler", "Ingress", "PersistentVolume", "PersistentVolumeClaim", "Service"}
"""Kinds without pods that the API server refuses without a specification."""


@for_each_release
def check_names_valid(rendering: Rendering) -> Iterator[Finding]:
    """Check that every object has a name, and one that the API server takes."""
    for manifest in rendering.manifests:
        problem, hint = _name_problem(manifest)
        if problem:
            yield Finding(problem, path=manifest.source, line=manifest.line, hint=hint)


@for_each_rendering
def check_specified(rendering: Rendering) -> Iterator[Finding]:
    """Find objects whose metadata or specification is missing or null, and pods without a container."""
    for manifest in rendering.manifests:
        for problem in _gaps(manifest):
            yield Finding(f"{called(manifest)}: {problem}", path=manifest.source, line=manifest.line)


def _name_problem(manifest: Manifest) -> tuple[str, str]:
    metadata = mapping_at(manifest.document, "metadata")
    name = metadata.get("name")
    if name is None or name == "":
        if metadata.get("generateName") or manifest.kind in _NAMELESS:
            return "", ""
        return f"{called(manifest)} has no metadata.name", ""
    if not isinstance(name, str):
        return f"{manifest.kind} {name!r}: metadata.name is not a text", "quote it"
    if manifest.kind in _PATH_NAMED or not is_of_kubernetes(manifest):
        is_valid = name not in (".", "..") and not set("/%") & set(name)
        return ("" if is_valid else f"{manifest.kind} {name!r}: the name has a / or a %, or is all dots"), ""
    if manifest.kind == "Service":
        is_valid, what = bool(_SERVICE_NAME.fullmatch(name)), "no DNS label that begins with a letter"
    elif manifest.kind == "Namespace":
        is_valid, what = is_dns_label(name), "no DNS label"
    else:
        is_valid = is_dns_subdomain(name)
        what = "no name that Kubernetes takes"
    hint = "lower-case letters, digits and dashes, a letter or digit first and last"
    return ("", "") if is_valid else (f"{manifest.kind} {name!r} is {what}", hint)


def _gaps(manifest: Manifest) -> Iterator[str]:
    document = manifest.document
    for field in ("metadata", "spec"):
        if field in document and document[field] is None:
            yield f"{field} is null"
    template = pod_template(manifest)
    if "spec" not in document and (template is not None or manifest.kind in _WITH_SPEC):
        yield "spec is missing"
    elif template is not None and mapping_at(document, "spec"):
        # Where the field is missing altogether, the schemas say so.
        spec = mapping_at(template, "spec")
        if not spec:
            yield "its pods have no spec"
        elif "containers" in spec and not list_at(spec, "containers"):
            yield "its pods have no containers"


RULES = (
    Rule(
        "names-valid",
        "The API server refuses an object without a name, or with a name that its kind cannot have.",
        check_names_valid,
        "https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#names",
    ),
    Rule(
        "objects-specified",
        "An object with nothing in it is accepted by most tools and refused by the cluster.",
        check_specified,
        "https://kubernetes.io/docs/concepts/overview/working-with-objects/#required-fields",
    ),
)
