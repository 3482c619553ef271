"""Rules about what every object must have: a name that its kind may have, and the specification that it is about."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from trainchart.check.finding import Finding
from trainchart.check.formats import DNS_LABEL_LIMIT, DNS_SUBDOMAIN_LIMIT, is_dns_label, is_dns_subdomain
from trainchart.check.objects import called, list_at, mapping_at
from trainchart.check.pod_templates import group_of, kubernetes_kind, pod_templates
from trainchart.check.rule import Rule
from trainchart.check.rules.cases import for_each_release, for_each_rendering
from trainchart.helm.rendering import Manifest, Rendering

_LENGTH = f"at most {DNS_SUBDOMAIN_LIMIT} characters"
_SERVICE_NAME = re.compile("[a-z](?:[-a-z0-9]*[a-z0-9])?")
_PATH_NAMED = {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "APIService", "CertificateSigningRequest"}
_PATH_NAMED |= {"ClusterTrustBundle", "IPAddress"}
"""Kinds whose names only have to fit into a URL: system:auth-delegator is one."""
_NAMELESS = {"AdmissionReview", "ConversionReview", "LocalSubjectAccessReview", "SelfSubjectAccessReview"}
_NAMELESS |= {"SelfSubjectReview", "SelfSubjectRulesReview", "SubjectAccessReview", "TokenRequest", "TokenReview"}
"""Kinds that are questions: nothing is stored, so nothing needs a name."""
_PATH_NAMED_GROUPS = tuple(f"{name}.openshift.io" for name in ("authorization", "image", "oauth", "security", "user"))
"""Groups of servers of their own with such names; all other added kinds are custom resources."""
_LABEL_NAMED = {
    "jobset.x-k8s.io": {"JobSet"},
    "leaderworkerset.x-k8s.io": {"LeaderWorkerSet"},
    "kubeflow.org": {"JAXJob", "MPIJob", "MXJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob"},
    "ray.io": {"RayCluster", "RayJob", "RayService"},
    "serving.knative.dev": {"Configuration", "Revision", "Route", "Service"},
}
"""Added kinds, by group, whose objects lend their name to Services."""
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
    name, beginning = metadata.get("name"), metadata.get("generateName")
    if name is None or name == "":
        if isinstance(beginning, str) and beginning:
            valid, hint = _name_rule(manifest)
            problem = f"{manifest.kind}: metadata.generateName {beginning!r} does not begin a valid name"
            return ("", "") if valid(f"{beginning}x") else (problem, hint)
        if beginning or kubernetes_kind(manifest) in _NAMELESS:
            return "", ""
        return f"{called(manifest)} has no metadata.name", ""
    if not isinstance(name, str):
        return f"{manifest.kind} {name!r}: metadata.name is not a string", "quote it"
    if kubernetes_kind(manifest) == "CustomResourceDefinition":
        spec = mapping_at(manifest.document, "spec")
        plural, group = mapping_at(spec, "names").get("plural"), spec.get("group")
        if plural and group and name != f"{plural}.{group}":
            return f"CustomResourceDefinition {name!r} must have the name {plural}.{group}: plural and group", ""
    valid, hint = _name_rule(manifest)
    return ("", "") if valid(name) else (f"{manifest.kind} {name!r} is not a valid name", hint)


def _name_rule(manifest: Manifest) -> tuple[Callable[[str], bool], str]:
    """Return what tells whether a name is valid for the object's kind, and what is."""
    group, kind = group_of(manifest), kubernetes_kind(manifest)
    if kind in _PATH_NAMED or group in _PATH_NAMED_GROUPS:
        return _fits_into_path, "anything except . and .., without / and %"
    if kind == "Service" or manifest.kind in _LABEL_NAMED.get(group, ()):
        what = "lower-case letters, digits and dashes, starting with a letter and ending with a letter or digit"
        # names-fit tells of names that are too long for what is made by them.
        return lambda name: is_dns_subdomain(name) and bool(_SERVICE_NAME.fullmatch(name)), f"{what}; {_LENGTH}"
    if kind == "Namespace":
        what = "lower-case letters, digits and dashes, starting and ending with a letter or digit"
        return is_dns_label, f"{what}; at most {DNS_LABEL_LIMIT} characters"
    what = "lower-case letters, digits, dashes and dots, starting and ending with a letter or digit"
    return is_dns_subdomain, f"{what}; {_LENGTH}"


def _fits_into_path(name: str) -> bool:
    return name not in (".", "..") and not set("/%") & set(name)


def _gaps(manifest: Manifest) -> Iterator[str]:
    document, templates = manifest.document, pod_templates(manifest)
    for field in ("metadata", "spec"):
        if field in document and document[field] is None:
            yield f"{field} is null"
    if "spec" not in document and (kubernetes_kind(manifest) in _WITH_SPEC or _keeps_pods_in_spec(manifest)):
        yield "spec is missing"
        return
    for template in templates if mapping_at(document, "spec") else ():
        # Where the field is missing altogether, the schemas say so.
        spec = mapping_at(template.content, "spec")
        place = "" if kubernetes_kind(manifest) else f"{template.where}: "
        if not spec:
            yield f"{place}its pods have no spec"
        elif "containers" in spec and not list_at(spec, "containers"):
            yield f"{place}its pods have no containers"


def _keeps_pods_in_spec(manifest: Manifest) -> bool:
    return kubernetes_kind(manifest) not in ("", "PodTemplate") and bool(pod_templates(manifest))


RULES = (
    Rule(
        "names-valid",
        "The API server refuses an object without a name, or with a name that its kind cannot have.",
        check_names_valid,
        "https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#names",
    ),
    Rule(
        "objects-specified",
        "Most tools accept an empty object, but the cluster refuses it.",
        check_specified,
        "https://kubernetes.io/docs/concepts/overview/working-with-objects/#required-fields",
    ),
)
