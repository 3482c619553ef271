"""A release of the family notebook over the volumes of other releases: installed, reached from here, uninstalled."""

from __future__ import annotations

import base64
import secrets
import shlex
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from trainchart.actions.support.cluster_access import Place, open_cluster
from trainchart.actions.support.family_charts import complete_chart, render_chart_of_family
from trainchart.actions.support.packs import read_packs
from trainchart.actions.support.project import find_project
from trainchart.check.objects import mapping_at, mappings_at
from trainchart.checkpoints.release_volume import ReleaseVolume, choose_node, find_volume
from trainchart.cluster.io import kubernetes_api
from trainchart.cluster.io.kubernetes_api import KubernetesApi
from trainchart.cluster.io.port_forward import PortForward
from trainchart.cluster.io.releases import look_at_all, read_events, read_training
from trainchart.cluster.snapshot import Object, find_trainings, has_ended, listed, name_of
from trainchart.errors import ClusterError, NotFound, NotInTime, ToolError, TrainchartError, Unreachable, UsageError
from trainchart.families.notebook_values import FAMILY, PORT, ShownVolume, make_values
from trainchart.helm.io.release import HelmInstall, run_install, run_uninstall, uninstall_argv
from trainchart.host.browser import open_in_browser
from trainchart.host.files import write_tree
from trainchart.kubernetes_yaml import dump_mapping
from trainchart.packs.pack import Pack
from trainchart.spec.document import parse_document
from trainchart_runtime.causes import CAUSES
from trainchart_runtime.contract import CHECKPOINTS_DIR, INSTANCE_LABEL, NAME_LABEL, TENSORBOARD_DIR
from trainchart_runtime.pod_problems import find_pod_problem, parse_event

_POLL_SECONDS = 0.5
_START_SECONDS = 600.0
"""How long a pod may take to start about which Kubernetes says nothing: the image may be large."""
_PATIENCE_SECONDS = 60.0
"""How long what keeps a pod from starting may last: volumes are attached, nodes get free."""
_REFUSED_SECONDS = 5.0
"""How long the ReplicaSet may be refused its pod."""
_LOOK_SECONDS = 5.0
_TRIES = 6
"""How often in a row the cluster may fail to answer."""
_MOST_RELEASES = 100
_TOKEN_BYTES = 24

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

    api: KubernetesApi
    namespace: str
    release: str
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
        return f"http://localhost:{self.forward.local_port}"

    def watch(self) -> NoReturn:
        """Wait, until something is wrong.

        Raises:
            ClusterError: its pod is gone, or the cluster cannot be asked any more.
        """
        failures = 0
        while True:
            time.sleep(_LOOK_SECONDS)
            try:
                pods = _list_pods(self.api, self.namespace, self.release)
            except Unreachable:
                failures += 1
                if failures == _TRIES:
                    raise
                continue
            failures = 0
            if not pods:
                raise ClusterError(f"the release {self.release} is gone: it was uninstalled meanwhile")


def show_volumes(request: ViewerRequest, tell: Tell, show: Callable[[Viewer], None]) -> NoReturn:
    """Install a pod over the volumes of releases, show where it is, and wait; uninstall it in the end.

    Raises:
        TrainchartError: what open_viewer and Viewer.watch say.
    """
    with open_viewer(request, tell) as viewer:
        show(viewer)
        if request.opens_browser:
            open_in_browser(viewer.url)
        viewer.watch()


@contextmanager
def open_viewer(request: ViewerRequest, tell: Tell) -> Iterator[Viewer]:
    """Install a pod over the volumes of releases and give it; uninstall it in the end, unless it is to be kept.

    Raises:
        NotFound: there is no such release.
        ToolError: a release has no volume to show, a port is taken, or helm fails.
        ClusterError: the cluster refuses, or the pod does not start.
    """
    api, namespace = open_cluster(request.place)
    names = list(request.releases) or _find_all(api, namespace)
    if len(names) > _MOST_RELEASES:
        raise UsageError(f"{len(names)} releases, of at most {_MOST_RELEASES}", hint="name those to show")
    shown = list(_find_shown(api, namespace, names, with_checkpoints=request.has_jupyter))
    packs = read_packs(find_project())
    image = _choose_image(request, shown, packs)
    name = f"{request.kind}-{secrets.token_hex(3)}"
    values = make_values(shown, image, token_secret=name if request.has_jupyter else "")
    token = secrets.token_urlsafe(_TOKEN_BYTES) if request.has_jupyter else ""
    forward = PortForward(api, namespace, lambda: _find_ready(api, namespace, name), PORT, request.port)
    uninstall = f"helm {shlex.join(uninstall_argv(name, namespace, request.place.context))}"
    with ExitStack() as cleanup:
        cleanup.callback(forward.close)
        removal = cleanup.enter_context(ExitStack())
        with tempfile.TemporaryDirectory(prefix="trainchart-chart-") as made:
            chart = _write_chart(Path(made, FAMILY), image, packs)
            if token:
                removal.callback(_delete_secret, api, namespace, name, tell)
                api.create_object(kubernetes_api.SECRETS, namespace, _make_secret(name, token))
            tell(f"installing the release {name} in namespace {namespace}")
            options = [part for each in request.sets for part in ("--set", each)]
            removal.callback(_uninstall, name, namespace, request.place.context, tell, uninstall)
            run_install(
                HelmInstall(name, namespace, request.place.context, (str(chart), *options), dump_mapping(values))
            )
        tell("waiting until its pod answers; the first time on a node, its image is pulled")
        _await_ready(api, namespace, name, image)
        if request.keeps:
            removal.pop_all()
        reach = f"kubectl port-forward service/{name} {PORT} -n {namespace}"
        note = f"it stays installed; to reach it later: {reach}; to uninstall it: {uninstall}"
        yield Viewer(api, namespace, name, forward, token, note if request.keeps else "")


def _find_all(api: KubernetesApi, namespace: str) -> list[str]:
    keys = list(find_trainings(look_at_all(api, namespace)))
    if not keys:
        raise NotFound(f"there is no training run in namespace {namespace}", hint="see: trainchart list -A")
    counts = [key.release for key in keys]
    return [key.release if counts.count(key.release) == 1 else f"{key.release}/{key.chart}" for key in keys]


def _find_shown(
    api: KubernetesApi, namespace: str, names: Sequence[str], *, with_checkpoints: bool
) -> Iterator[ShownVolume]:
    """Yield the volumes of releases, each once: those of logs, and those of checkpoints if they are asked for."""
    pods = api.list_objects(kubernetes_api.PODS, namespace)
    for name in dict.fromkeys(names):
        found: dict[tuple[str, str], ReleaseVolume] = {}
        problem: TrainchartError | None = None
        for variable in (TENSORBOARD_DIR, *((CHECKPOINTS_DIR,) if with_checkpoints else ())):
            try:
                volume = _find_volume(api, namespace, name, variable)
            except ToolError as error:
                problem = error
                continue
            found.setdefault((volume.claim, volume.sub_path), volume)
        if not found and problem is not None:
            raise problem
        for number, volume in enumerate(found.values()):
            claim = api.read_object(kubernetes_api.CLAIMS, namespace, volume.claim)
            folder = name.replace("/", "-")
            node = choose_node(claim, pods)
            yield ShownVolume(f"{folder}-checkpoints" if number else folder, volume, node)


def _find_volume(api: KubernetesApi, namespace: str, name: str, variable: str) -> ReleaseVolume:
    release, _, chart = name.partition("/")
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
            hint="training-images/notebook/Dockerfile makes it of a training image; a pack can set it for everyone",
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
        "description": "Made for one command.",
    }
    if image:
        spec["values"] = {"image": {"repository": image.partition("@")[0]}}
    text = dump_mapping(spec)
    document = parse_document(text, file=f"{FAMILY}.yaml", layer="spec")
    located = complete_chart(Path(f"{FAMILY}.yaml"), text, document, packs)
    write_tree(target, render_chart_of_family(located).files, is_ours=lambda _: False)
    return target


def _make_secret(name: str, token: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": {INSTANCE_LABEL: name, NAME_LABEL: FAMILY}},
        "data": {"token": base64.b64encode(token.encode()).decode()},
    }


def _list_pods(api: KubernetesApi, namespace: str, release: str) -> list[Object]:
    found = api.list_objects(kubernetes_api.PODS, namespace, labels=f"{INSTANCE_LABEL}={release}")
    return [pod for pod in found if not has_ended(pod)]


def _find_ready(api: KubernetesApi, namespace: str, release: str) -> str:
    """Return the name of the pod that answers. Raises NotFound where none does."""
    for pod in _list_pods(api, namespace, release):
        conditions = mappings_at(pod, "status", "conditions")
        if any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions):
            return name_of(pod)
    raise NotFound(f"no pod of {release} is ready")


def _await_ready(api: KubernetesApi, namespace: str, release: str, image: str) -> None:
    """Wait for the pod. Raises ClusterError where it does not start, and NotInTime."""
    began = time.monotonic()
    while True:
        with suppress(NotFound):
            _find_ready(api, namespace, release)
            return
        seconds = time.monotonic() - began
        pods = _list_pods(api, namespace, release)
        events = [parse_event(event) for event in listed(read_events(api, namespace))]
        if not pods and seconds > _REFUSED_SECONDS:
            for event in events:
                if event.kind == "ReplicaSet" and event.name.startswith(release) and event.reason == "FailedCreate":
                    raise ClusterError(f"the pod of {release} is refused: {event.message}")
        for pod in pods:
            _refuse_ended(pod, image)
            problem = find_pod_problem(pod, events)
            if problem is not None and seconds > _PATIENCE_SECONDS:
                hint = CAUSES[problem.cause].hint
                raise ClusterError(f"the pod {name_of(pod)} does not start: {problem.message}", hint=hint)
        if seconds > _START_SECONDS:
            raise NotInTime(
                f"the pod of {release} is not ready after {_START_SECONDS:.0f} seconds",
                hint=f"look at it while it starts: kubectl describe pod -n {namespace} -l {INSTANCE_LABEL}={release}",
            )
        time.sleep(_POLL_SECONDS)


def _refuse_ended(pod: Object, image: str) -> None:
    """Raise ClusterError where the pod's program has ended."""
    for status in mappings_at(pod, "status", "containerStatuses"):
        for key in ("state", "lastState"):
            ended = mapping_at(status, key, "terminated")
            if ended:
                said = " ".join(str(ended.get("message") or ended.get("reason") or "").split())[-300:]
                raise ClusterError(
                    f"the program of {name_of(pod)} has ended with exit code {ended.get('exitCode')}: {said}",
                    hint=f"is {image or 'the image'} one with what it needs? Name another one: --image",
                )


def _uninstall(name: str, namespace: str, context: str, tell: Tell, command: str) -> None:
    """Uninstall the release; that it cannot be is told, and hides no error that came before."""
    # Who presses Ctrl-C twice wants an end, and not a pod that goes on; helm inherits that these are ignored.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        run_uninstall(name, namespace, context)
    except ToolError as error:
        if "not found" not in error.message:
            tell(f"note: {name} may still be there: {error.message}; to remove it: {command}")


def _delete_secret(api: KubernetesApi, namespace: str, name: str, tell: Tell) -> None:
    try:
        api.delete_object(kubernetes_api.SECRETS, namespace, name)
    except NotFound:
        pass
    except ClusterError as error:
        tell(f"note: the Secret {name} may still be there: {error.message}")
