"""A release of the family notebook over the volumes of other releases: installed, reached from here, uninstalled."""

from __future__ import annotations

import base64
import re
import secrets
import shlex
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from trainchart.actions.support.cluster_access import Place, open_cluster
from trainchart.actions.support.family_charts import complete_chart, render_chart_of_family
from trainchart.actions.support.packs import read_packs
from trainchart.actions.support.project import find_project
from trainchart.actions.support.viewer_pod import ViewerPod
from trainchart.check.objects import mapping_at
from trainchart.checkpoints.release_volume import ReleaseVolume, choose_node, find_volume
from trainchart.cluster.io import kubernetes_api
from trainchart.cluster.io.kubernetes_api import KubernetesApi
from trainchart.cluster.io.port_forward import HOST, PortForward
from trainchart.cluster.io.releases import look_at_all, read_training
from trainchart.cluster.snapshot import find_trainings
from trainchart.errors import ClusterError, Forbidden, NotFound, ToolError, UsageError
from trainchart.families.notebook_values import FAMILY, PORT, ShownVolume, make_values
from trainchart.helm.io.inputs import require_release_name
from trainchart.helm.io.release import HelmInstall, run_install, run_uninstall, uninstall_argv
from trainchart.host.browser import open_in_browser
from trainchart.host.files import write_tree
from trainchart.kubernetes_yaml import dump_mapping
from trainchart.packs.pack import Pack
from trainchart.spec.document import parse_document
from trainchart_runtime.contract import CHECKPOINTS_DIR, INSTANCE_LABEL, NAME_LABEL, TENSORBOARD_DIR

_MOST_RELEASES = 100
_TOKEN_BYTES = 24
_DECIDED = ("jupyter", "tokenSecret")
"""Values that the command sets itself."""

Tell = Callable[[str], None]


@dataclass(frozen=True)
class ViewerRequest:
    """What is to be shown, and by which pod."""

    kind: str
    """The beginning of the release's name: notebook or tensorboard."""
    place: Place
    releases: Sequence[str]
    """RELEASE or RELEASE/CHART; none: all training runs of the namespace."""
    image: str
    """Empty: that of a pack for notebooks, and for TensorBoard the training image of the first release."""
    sets: Sequence[str]
    """KEY=VALUE, as for helm install."""
    port: int
    """Of this machine; 0 for any that is free."""
    has_jupyter: bool
    keeps: bool
    """Leave it installed in the end."""
    opens_browser: bool


@dataclass(frozen=True)
class Viewer:
    """A pod that answers, and how this machine reaches it."""

    pod: ViewerPod
    forward: PortForward
    token: str
    note: str
    """How one that is kept is reached and uninstalled later; "" for one that is not."""

    @property
    def url(self) -> str:
        """The page: JupyterLab's, or TensorBoard's where that is alone."""
        return f"{self.base}/lab" if self.token else self.base

    @property
    def base(self) -> str:
        return f"http://{HOST}:{self.forward.local_port}"


def show_volumes(request: ViewerRequest, tell: Tell, show: Callable[[Viewer], None]) -> NoReturn:
    """Install a pod over the volumes of releases, show where it is, and wait; uninstall it in the end.

    Raises:
        TrainchartError: what open_viewer and ViewerPod.watch say.
    """
    with open_viewer(request, tell) as viewer:
        show(viewer)
        if request.opens_browser:
            open_in_browser(viewer.url)
        viewer.pod.watch()


@contextmanager
def open_viewer(request: ViewerRequest, tell: Tell) -> Iterator[Viewer]:
    """Install a pod over the volumes of releases and give it; uninstall it in the end, unless it is to be kept.

    Raises:
        NotFound: there is no such release.
        ToolError: a release has no volume to show, a port is taken, or helm fails.
        ClusterError: the cluster refuses, or the pod does not start.
    """
    _refuse_decided(request.sets)
    api, namespace = open_cluster(request.place)
    shown = _find_shown(api, namespace, request, tell)
    packs = read_packs(find_project())
    image = _choose_image(request, shown, packs)
    name = f"{request.kind}-{secrets.token_hex(3)}"
    token = secrets.token_urlsafe(_TOKEN_BYTES) if request.has_jupyter else ""
    values = make_values(shown, image, token_secret=name if token else "")
    pod = ViewerPod(api, namespace, name, image, tell)
    forward = PortForward(api, namespace, pod.find_ready, PORT, request.port)
    with ExitStack() as cleanup:
        cleanup.callback(forward.close)
        removal = cleanup.enter_context(ExitStack())
        with tempfile.TemporaryDirectory(prefix="trainchart-chart-") as made:
            chart = _write_chart(Path(made, FAMILY), image, packs)
            options = tuple(part for each in request.sets for part in ("--set", each))
            install = HelmInstall(name, namespace, request.place.context, (str(chart), *options), dump_mapping(values))
            tell(f"installing the release {name} in namespace {namespace}")
            removal.callback(_uninstall, api, install, tell)
            _install(install)
        if token:
            _create_secret(api, namespace, name, token)
        tell("waiting until its pod answers; the first time on a node, its image is pulled")
        pod.await_ready()
        note = ""
        if request.keeps:
            removal.pop_all()
            reach = f"kubectl port-forward service/{name} {PORT} -n {namespace}"
            note = f"it stays installed; to reach it later: {reach}; to uninstall it: {_uninstall_command(install)}"
        yield Viewer(pod, forward, token, note)


def _refuse_decided(sets: Sequence[str]) -> None:
    """Raise UsageError for values that the command sets itself."""
    for each in sets:
        for part in re.split(r"(?<!\\),", each):
            key = part.partition("=")[0].strip()
            if key in _DECIDED:
                raise UsageError(
                    f"--set {key}: this command sets it itself",
                    hint="for a notebook or TensorBoard with your own values, write a spec: docs/families.md",
                )


def _find_all(api: KubernetesApi, namespace: str) -> list[str]:
    keys = list(find_trainings(look_at_all(api, namespace)))
    if not keys:
        raise NotFound(f"there is no training run in namespace {namespace}", hint="see: trainchart list -A")
    counts = [key.release for key in keys]
    return [key.release if counts.count(key.release) == 1 else f"{key.release}/{key.chart}" for key in keys]


def _find_shown(api: KubernetesApi, namespace: str, request: ViewerRequest, tell: Tell) -> list[ShownVolume]:
    """Return the volumes of the releases, each once: those of logs, for a notebook also those of checkpoints.

    Of all releases of a namespace, those without such a volume are told and left out.
    """
    names = tuple(dict.fromkeys(request.releases)) or _find_all(api, namespace)
    if len(names) > _MOST_RELEASES:
        raise UsageError(f"{len(names)} releases: at most {_MOST_RELEASES} can be shown", hint="name those to show")
    pods = api.list_objects(kubernetes_api.PODS, namespace)
    shown: list[ShownVolume] = []
    for name in names:
        try:
            volumes = _find_volumes(api, namespace, name, with_checkpoints=request.has_jupyter)
            nodes = [
                choose_node(api.read_object(kubernetes_api.CLAIMS, namespace, each.claim), pods) for each in volumes
            ]
        except (ToolError, NotFound) as error:
            if request.releases or (name == names[-1] and not shown):
                raise
            tell(f"note: {name} is left out: {error.message}")
            continue
        for folder, volume, node in zip((name, f"{name}-checkpoints"), volumes, nodes, strict=False):
            shown.append(ShownVolume(folder, volume, node))
    return shown


def _find_volumes(api: KubernetesApi, namespace: str, name: str, *, with_checkpoints: bool) -> list[ReleaseVolume]:
    """Return the volumes of a release. Raises ToolError where it has none that can be shown, and ClusterError."""
    found: dict[tuple[str, str], ReleaseVolume] = {}
    problem: ToolError | None = None
    for variable in (TENSORBOARD_DIR, *((CHECKPOINTS_DIR,) if with_checkpoints else ())):
        try:
            volume = _find_volume(api, namespace, name, variable)
        except ToolError as error:
            problem = error
            continue
        found.setdefault((volume.claim, volume.sub_path), volume)
    if not found and problem is not None:
        raise problem
    return list(found.values())


def _find_volume(api: KubernetesApi, namespace: str, name: str, variable: str) -> ReleaseVolume:
    release, _, chart = name.partition("/")
    require_release_name(release)
    sets, claims = (
        api.list_objects(kind, namespace, labels=f"{INSTANCE_LABEL}={release}")
        for kind in (kubernetes_api.STATEFUL_SETS, kubernetes_api.CLAIMS)
    )
    if not (sets or claims):
        read_training(api, namespace, name)  # says what is there instead
    return find_volume(release, namespace, chart, sets, (), claims, variable=variable)


def _choose_image(request: ViewerRequest, shown: Sequence[ShownVolume], packs: Sequence[Pack]) -> str:
    """Return the image; "" for that of a pack. Raises UsageError where none is known."""
    if request.image:
        return request.image
    if request.has_jupyter:
        for pack in packs:
            defaults = pack.family_defaults.get(FAMILY)
            if defaults is not None and mapping_at(defaults.tree, "values", "image").get("repository"):
                return ""
        raise UsageError(
            "name the image with JupyterLab: --image IMAGE",
            hint="training-images/notebook/Dockerfile builds it from a training image; a pack can set it for all users",
        )
    image = next((each.volume.training_image for each in shown if each.volume.training_image), "")
    if not image:
        raise UsageError("no image is known, since the releases are uninstalled: --image IMAGE")
    return image


def _write_chart(target: Path, image: str, packs: tuple[Pack, ...]) -> Path:
    """Write the chart of the family, with what the project's packs say of it, and return its folder."""
    spec: dict[str, Any] = {
        "apiVersion": "trainchart/v1",
        "kind": "Chart",
        "family": FAMILY,
        "name": FAMILY,
        "description": "Created for one command.",
    }
    if image:
        spec["values"] = {"image": {"repository": image.partition("@")[0]}}
    text = dump_mapping(spec)
    document = parse_document(text, file=f"{FAMILY}.yaml", layer="spec")
    located = complete_chart(Path(f"{FAMILY}.yaml"), text, document, packs)
    write_tree(target, render_chart_of_family(located).files, is_ours=lambda _: False)
    return target


def _create_secret(api: KubernetesApi, namespace: str, name: str, token: str) -> None:
    """Create the Secret with the token, which is deleted with the Deployment of the release."""
    owner = api.read_object(kubernetes_api.DEPLOYMENTS, namespace, name)
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": owner["metadata"]["uid"]}
    document = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "labels": {INSTANCE_LABEL: name, NAME_LABEL: FAMILY},
            "ownerReferences": [reference],
        },
        "data": {"token": base64.b64encode(token.encode()).decode()},
    }
    api.create_object(kubernetes_api.SECRETS, namespace, document)


def _install(install: HelmInstall) -> None:
    try:
        run_install(install)
    except ToolError as error:
        hint = (
            "what was created has been removed again; check --set, and whether you have permission to create what the "
            "message names"
        )
        raise ToolError(error.message, hint=hint if "exited with" in error.message else error.hint) from error


def _uninstall_command(install: HelmInstall) -> str:
    return f"helm {shlex.join(uninstall_argv(install.release, install.namespace, install.context))}"


def _uninstall(api: KubernetesApi, install: HelmInstall, tell: Tell) -> None:
    """Uninstall the release; that it cannot be is told where something is left, and hides no error that came before."""
    # Who presses Ctrl-C twice wants an end, and not a pod that goes on; helm inherits that these are ignored.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        run_uninstall(install.release, install.namespace, install.context)
    except ToolError as error:
        if not _is_gone(api, install):
            command = _uninstall_command(install)
            tell(f"note: {install.release} may still be there: {error.message}; to remove it: {command}")


def _is_gone(api: KubernetesApi, install: HelmInstall) -> bool:
    """Return whether nothing is left of a release; who may not read Helm's record could not make it either."""
    name = install.release
    record = f"sh.helm.release.v1.{name}.v1"
    objects = [(kind, name) for kind in (kubernetes_api.NETWORK_POLICIES, kubernetes_api.SERVICES)]
    for kind, each in (*objects, (kubernetes_api.DEPLOYMENTS, name), (kubernetes_api.SECRETS, record)):
        try:
            api.read_object(kind, install.namespace, each)
        except NotFound:
            continue
        except Forbidden:
            if each == record:
                continue
        except ClusterError:
            pass
        return False
    return True
