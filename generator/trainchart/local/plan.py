"""Plans a local run: manifests and settings in, every process with argv, environment and folders out.

Pure, and from the manifests alone: whatever a template puts into a container appears in the process.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from trainchart.errors import PlanError, ToolError
from trainchart.helm.rendering import Manifest
from trainchart.json_documents import parse_json
from trainchart.local import objects
from trainchart.local.environment import ContainerEnvironment, inherit_variables, resolve_environment
from trainchart.local.notices import Notices
from trainchart.local.objects import PodIdentity, RenderedData, TrainingSet
from trainchart.local.path_map import PathMap
from trainchart.local.pod_plan import PodPlan
from trainchart.local.volumes import Storage, claim_names, leads_out, resolve_volumes
from trainchart.plan.strategies import STRATEGIES, describe_lone_worker
from trainchart.quantities import may_be_gpu
from trainchart.reports.run_settings import RoleSettings, find_last_step, read_role
from trainchart.secret_masks import MASK
from trainchart.variables import expand_variables
from trainchart_runtime import cluster, contract

POD_MARK = "TRAINCHART_LOCAL_POD"
"""Set in every process of a local run, so that even those that left their session are found at the end."""
WRITES_FILE = "TRAINCHART_LOCAL_WRITES"
"""Set where a pod's own file system is read-only: the file in which write_watch/ notes what a pod may not write."""
DEFAULT_MAX_RESTARTS = 3
DEFAULT_EVALUATOR_GRACE_SECONDS = 600


@dataclass(frozen=True)
class LocalSettings:
    """What a local run knows beside the manifests; all paths are absolute."""

    release: str
    namespace: str
    release_folder: str
    launcher: str
    code: str
    """Stands for the image's /app."""
    python: str
    """Stands for the image's python and python3."""
    caller: Mapping[str, str]
    """The caller's whole environment; only what environment.INHERITED names is used."""
    claims: Mapping[str, str]
    """Name of a claim, whole or short, to the folder that the user chose for it."""
    ports: Mapping[str, int]
    """Loopback port for every address of `needed_addresses`."""
    write_watch: str = ""
    """Folder of the sitecustomize that notes what a pod may not write; empty: nothing is noted."""
    max_restarts: int | None = None
    """How often a program may fail and be started again; None where the chart decides."""
    has_gpu: bool = True


@dataclass(frozen=True)
class LocalPlan:
    """A whole local run; it ends when all `deciding` pods have succeeded."""

    release: str
    namespace: str
    chart: str
    release_folder: str
    pods: tuple[PodPlan, ...]
    addresses: Mapping[str, str]
    """"host:port" as the cluster knows it to "127.0.0.1:port"."""
    deciding: tuple[str, ...]
    evaluator_grace_seconds: int
    claims: Mapping[str, str]
    outputs: tuple[str, ...]
    """Folders of the claims that a pod may write to."""
    checkpoints: str
    """Folder or URI of the checkpoints, empty where the model keeps none."""
    tensorboard_logs: str
    hyperparameters: Mapping[str, Any]
    """As every pod gets them; empty where the chart has no file of them."""
    warnings: tuple[str, ...]
    strategy: str = ""
    roles: Mapping[str, RoleSettings] = field(default_factory=dict)

    @property
    def last_step(self) -> int | None:
        """The step that ends the training, where a hyperparameter says it."""
        return find_last_step(self.hyperparameters)


def needed_addresses(manifests: Sequence[Manifest]) -> tuple[str, ...]:
    """Return "<pod>.<service>:<port>" for every port of every training pod, in a stable order."""
    sets = objects.find_training_sets(manifests, Notices())
    return tuple(
        f"{training_set.name}-{ordinal}.{training_set.service}:{port}"
        for training_set in sets
        for ordinal in range(training_set.replicas)
        for port in _ports_of(training_set)
    )


def plan_local_run(manifests: Sequence[Manifest], settings: LocalSettings) -> LocalPlan:
    """Return the plan of a run of these manifests.

    Raises:
        PlanError: they cannot run here; the error lists every reason.
        ToolError: --claim names a claim that does not exist.
    """
    notices = Notices()
    sets = objects.find_training_sets(manifests, notices)
    _check_sets(sets, notices, has_gpu=settings.has_gpu)
    data = objects.find_rendered_data(manifests)
    addresses = {address: f"127.0.0.1:{settings.ports[address]}" for address in needed_addresses(manifests)}
    planner = _PodPlanner(settings, data, addresses, notices)
    drafts = [
        (pod, planner.plan_pod(training_set, pod))
        for training_set in sets
        for pod in objects.identify_pods(training_set, settings.namespace)
    ]
    if notices.problems:
        raise PlanError(
            "this chart cannot run on this machine",
            hint="fix these, or install the chart in a cluster",
            problems=tuple(notices.problems),
        )
    claims = {name: folder for _, draft in drafts for name, folder in draft.claims.items()}
    _check_claims(settings.claims, claims, {_claim_prefix(training_set) for training_set in sets})
    pods = tuple(draft.plan for _, draft in drafts)
    first = drafts[0][1]
    return LocalPlan(
        release=settings.release,
        namespace=settings.namespace,
        chart=sets[0].chart,
        release_folder=settings.release_folder,
        pods=pods,
        addresses=addresses,
        deciding=first.deciding,
        evaluator_grace_seconds=_evaluator_grace_seconds(sets),
        claims=claims,
        outputs=tuple(dict.fromkeys(folder for _, draft in drafts for folder in draft.outputs)),
        checkpoints=first.plan.environment.get(contract.CHECKPOINTS_DIR, ""),
        tensorboard_logs=first.plan.environment.get(contract.TENSORBOARD_DIR, ""),
        hyperparameters=first.hyperparameters,
        warnings=tuple(notices.warnings),
        strategy=str(sets[0].annotations.get(contract.STRATEGY_ANNOTATION, "")),
        roles={each.role: read_role(each.replicas, each.pod_spec) for each in sets},
    )


def _check_sets(sets: Sequence[TrainingSet], notices: Notices, *, has_gpu: bool) -> None:
    if not sets and not notices.problems:
        raise PlanError(
            "this chart renders no training pods",
            hint=f"expected StatefulSets labelled {contract.COMPONENT_LABEL}: {' | '.join(cluster.ROLES)}",
        )
    roles = [item.role for item in sets]
    doubled = sorted({role for role in roles if roles.count(role) > 1})
    if doubled:
        raise PlanError(
            f"the chart contains several training runs ({', '.join(doubled)} twice), but a local run takes only one",
            hint="switch the others off in the values, for example by `--set other.enabled=false`",
        )
    if sets and not any(item.replicas for item in sets):
        raise PlanError("every role has zero replicas: there is nothing to run", hint="raise `replicas` in the values")
    for training_set in sets:
        limits = (training_set.container.get("resources") or {}).get("limits") or {}
        devices = sorted(name for name in limits if may_be_gpu(name))
        if devices:
            here = "here all pods share this machine" if has_gpu else "this machine has no GPU: the CPU is used"
            notices.warn(f"{training_set.role} asks for {', '.join(devices)}: {here}")
        strategy = str(training_set.annotations.get(contract.STRATEGY_ANNOTATION, ""))
        if training_set.role == cluster.WORKER and strategy in STRATEGIES:
            gpus = sum(int(limits[name]) for name in devices)
            notices.warn(describe_lone_worker(STRATEGIES[strategy], training_set.replicas, gpus))


def _claim_prefix(training_set: TrainingSet) -> str:
    """Return what a generated chart puts before the names of its own objects."""
    return f"{training_set.service}-"


def _check_claims(chosen: Collection[str], claims: Collection[str], prefixes: Collection[str]) -> None:
    names = {claim: [name for prefix in prefixes for name in claim_names(claim, prefix)] for claim in claims}
    unknown = [name for name in chosen if not any(name in known for known in names.values())]
    if unknown:
        shortest = sorted(min(known, key=len) for known in names.values())
        raise ToolError(
            f"there is no claim {', '.join(repr(name) for name in unknown)} for --claim to replace",
            hint=f"claims: {', '.join(shortest)}" if shortest else "no training pod mounts a claim",
        )


def _evaluator_grace_seconds(sets: Sequence[TrainingSet]) -> int:
    for training_set in sets:
        if contract.EVALUATOR_GRACE_ANNOTATION in training_set.annotations:
            return int(training_set.annotations[contract.EVALUATOR_GRACE_ANNOTATION])
    return DEFAULT_EVALUATOR_GRACE_SECONDS


def _ports_of(training_set: TrainingSet) -> tuple[int, ...]:
    declared = [int(item["containerPort"]) for item in training_set.container.get("ports") or []]
    return tuple(dict.fromkeys([*declared, contract.TF_PORT, contract.STATUS_PORT]))


@dataclass(frozen=True)
class _Draft:
    plan: PodPlan
    deciding: tuple[str, ...]
    claims: Mapping[str, str]
    outputs: tuple[str, ...]
    hyperparameters: Mapping[str, Any]


@dataclass(frozen=True)
class _PodPlanner:
    settings: LocalSettings
    data: RenderedData
    addresses: Mapping[str, str]
    notices: Notices

    def plan_pod(self, training_set: TrainingSet, pod: PodIdentity) -> _Draft:
        folder = PurePosixPath(self.settings.release_folder)
        pod_folder = folder / "pods" / pod.label
        container = training_set.container
        resolved = resolve_environment(container, pod, self.data, self.settings.caller, self.notices)
        storage = Storage(folder / "claims", pod_folder, self.settings.claims, _claim_prefix(training_set))
        volumes = resolve_volumes(training_set, pod, self.data, storage, resolved.values, self.notices)
        termination_file = str(pod_folder / "termination-log")
        image_paths = (
            (contract.LAUNCHER_PATH, self.settings.launcher),
            (contract.CODE_PATH, self.settings.code),
            (str(container.get("terminationMessagePath") or "/dev/termination-log"), termination_file),
        )
        paths = PathMap(image_paths).with_pairs(volumes.paths)
        environment = self._complete(resolved, pod, paths, termination_file)
        environment.update(self._watch_writes(container, environment, paths, str(pod_folder)))
        contents = {item.path: item.content for item in volumes.files}
        working_directory = self._working_directory(training_set, paths)
        # A container runtime makes a working directory that is not there; here only volumes are ours to make it in.
        below = [
            working_directory[len(path) + 1 :] for _, path in volumes.paths if working_directory.startswith(f"{path}/")
        ]
        made = [working_directory] if below and not leads_out(below[0]) else []
        command = self._command(training_set)
        plan = PodPlan(
            name=pod.name,
            label=pod.label,
            role=pod.role,
            argv=self._expand(command, resolved.values, paths),
            shown_argv=self._expand(command, {**resolved.values, **dict.fromkeys(resolved.secrets, MASK)}, paths),
            environment=environment,
            secrets=resolved.secrets,
            working_directory=working_directory,
            pod_folder=str(pod_folder),
            folders=(str(pod_folder), *volumes.folders, *made),
            files=volumes.files,
            paths=dict(paths.pairs),
            log_file=str(folder / "logs" / f"{pod.label}.log"),
            termination_file=termination_file,
            state_folder=environment.get(contract.STATE_DIR) or paths.translate(contract.STATE_MOUNT),
            stop_grace_seconds=training_set.stop_grace_seconds,
            max_restarts=_integer(environment.get(contract.MAX_RESTARTS), DEFAULT_MAX_RESTARTS),
        )
        cluster_file = environment.get(contract.CLUSTER_FILE) or paths.translate(
            f"{contract.CONFIG_MOUNT}/{contract.CLUSTER_FILE_NAME}"
        )
        hyperparameters_file = environment.get(contract.HYPERPARAMETERS_FILE) or paths.translate(
            f"{contract.CONFIG_MOUNT}/{contract.HYPERPARAMETERS_FILE_NAME}"
        )
        return _Draft(
            plan,
            self._find_deciding(contents.get(cluster_file), training_set),
            volumes.claims,
            volumes.outputs,
            _parse_hyperparameters(contents.get(hyperparameters_file, b"")),
        )

    def _complete(
        self, resolved: ContainerEnvironment, pod: PodIdentity, paths: PathMap, termination_file: str
    ) -> dict[str, str]:
        """Join what the image would provide, the container's own variables and what only local runs need."""
        translated = {
            name: value if name in resolved.secrets else paths.translate(value)
            for name, value in resolved.values.items()
        }
        python_folder = str(PurePosixPath(self.settings.python).parent)
        if translated.get("NVIDIA_VISIBLE_DEVICES") == "void":
            # In a container its runtime hides the GPUs; a process hides them from CUDA.
            translated.setdefault("CUDA_VISIBLE_DEVICES", "-1")
        if self.settings.max_restarts is not None:
            translated[contract.MAX_RESTARTS] = str(self.settings.max_restarts)
        return {
            **inherit_variables({**self.settings.caller, **_only(translated, "PATH")}, python_folder),
            **{name: value for name, value in translated.items() if name != "PATH"},
            contract.ADDRESSES: json.dumps(self.addresses, sort_keys=True),
            # Always set: without it the launcher writes to the real /dev of this machine.
            contract.TERMINATION_FILE: termination_file,
            POD_MARK: f"{self.settings.release_folder}/{pod.label}",
        }

    def _watch_writes(
        self, container: Mapping[str, Any], environment: Mapping[str, str], paths: PathMap, pod_folder: str
    ) -> dict[str, str]:
        """Return the variables by which Python notes what it writes where the pod is read-only."""
        is_read_only = (container.get("securityContext") or {}).get("readOnlyRootFilesystem")
        if not self.settings.write_watch or not is_read_only:
            return {}
        mounts = container.get("volumeMounts") or []
        writable = [paths.translate(str(mount.get("mountPath"))) for mount in mounts if not mount.get("readOnly")]
        home = environment.get("HOME", "")
        read_only = [self.settings.code, *([home] if home not in ("", "/", "/tmp") else [])]
        python_path = (self.settings.write_watch, environment.get("PYTHONPATH", ""))
        return {
            "PYTHONPATH": ":".join(part for part in python_path if part),
            WRITES_FILE: f"{pod_folder}/writes",
            "TRAINCHART_LOCAL_WRITABLE": ":".join([pod_folder, *writable, *_only(environment, "TMPDIR").values()]),
            "TRAINCHART_LOCAL_READ_ONLY": ":".join(read_only),
        }

    def _command(self, training_set: TrainingSet) -> tuple[str, ...]:
        """Return the container's command and arguments, as the manifest has them."""
        container = training_set.container
        command = [str(word) for word in container.get("command") or []]
        if not command:
            self.notices.refuse(
                f"{training_set.role} has no command: its image decides, and a local run has no image",
                where=training_set.source,
                hint=f"set `command: [python3, {contract.LAUNCHER_PATH}, --]`",
            )
            return ()
        return (*command, *(str(word) for word in container.get("args") or []))

    def _expand(self, words: tuple[str, ...], values: Mapping[str, str], paths: PathMap) -> tuple[str, ...]:
        """Return the command as it runs here."""
        program_starts = {0, words.index("--") + 1} if "--" in words else {0}
        return tuple(
            self.settings.python
            if position in program_starts and word in ("python", "python3")
            else paths.translate(expand_variables(word, values))
            for position, word in enumerate(words)
        )

    def _working_directory(self, training_set: TrainingSet, paths: PathMap) -> str:
        wanted = str(training_set.container.get("workingDir") or contract.CODE_PATH)
        translated = paths.translate(wanted)
        if translated == wanted and wanted not in dict(paths.pairs):
            self.notices.warn(f"{training_set.role}: the working folder {wanted} exists only in the image")
            return self.settings.code
        return translated

    def _find_deciding(self, content: bytes | None, training_set: TrainingSet) -> tuple[str, ...]:
        if content is None:
            self.notices.refuse(
                f"{training_set.role} has no cluster description",
                where=training_set.source,
                hint=f"mount a ConfigMap with {contract.CLUSTER_FILE_NAME}, named in {contract.CLUSTER_FILE}",
            )
            return ()
        try:
            description = cluster.parse_cluster(content.decode(errors="replace"))
        except cluster.ClusterDescriptionError as error:
            self.notices.refuse(str(error), hint="use a chart and a trainchart of the same version")
            return ()
        return tuple(str(task) for task in cluster.deciding_tasks(description))


def _parse_hyperparameters(content: bytes) -> Mapping[str, Any]:
    try:
        values = parse_json(content)
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def _only(values: Mapping[str, str], name: str) -> dict[str, str]:
    return {name: values[name]} if name in values else {}


def _integer(text: str | None, default: int) -> int:
    return int(text) if text and text.isdecimal() else default
