"""A training of another tool, as the tree of a model spec: roles are merged, and what they share is said once. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trainchart.importing.amounts import GPU, find_gpu_resource
from trainchart.importing.commands import is_python_file, lift_hyperparameters
from trainchart.importing.images import UNKNOWN_TAG, ImportedImage, read_image
from trainchart.importing.ledger import Ledger
from trainchart.importing.pods import RoleSpec, read_role
from trainchart.importing.strategy_choice import Evidence, choose_strategy
from trainchart.importing.training import Training
from trainchart.importing.volumes import merge_mounts
from trainchart.placeholder import REGISTRY
from trainchart.plan.strategies import STRATEGIES
from trainchart.spec.settings import EVERY_POD_SETTINGS, POD_SETTINGS
from trainchart_runtime.cluster import CHIEF, EVALUATOR, PS, ROLES, WORKER

Tree = dict[str, Any]
RUNTIME_IMAGE = f"{REGISTRY}/trainchart-runtime:replace-this-tag"
_USER = 1000
_OWN_SETTINGS = POD_SETTINGS - EVERY_POD_SETTINGS | {"podSecurityContext", "containerSecurityContext"}
"""What all roles share and the spec says once; where pods may run stays with the roles, so that the chart's own pods
need no GPU node."""


@dataclass(frozen=True)
class Choices:
    """What the user decides; empty texts mean "decide"."""

    name: str
    strategy: str = ""
    image: str = ""
    runtime_image: str = ""
    has_runtime_image: bool = False
    """Whether a pack names the runtime image."""
    code: str = ""
    """Folder of the code as the spec says it, where the user has it."""
    scripts: Mapping[str, str] = field(default_factory=dict)
    """Name of a script in that folder → its path there."""


def build_tree(training: Training, choices: Choices) -> Tree:
    """Return the tree of the model spec, in the order of its keys; the training's ledger says what became of what."""
    ledger = training.ledger
    containers = [
        container for pods in training.pods for container in ledger.entries(pods.pod.get("containers"), pods.place)
    ]
    gpu = find_gpu_resource(containers)
    specs = [read_role(pods, training.container, gpu, choices.name, ledger) for pods in training.pods]
    image = _choose_image(specs, choices, ledger)
    strategy = _choose_strategy(specs, choices, image, ledger)
    roles = _fit_roles(specs, strategy, ledger)
    for role in roles:
        if choices.code:
            _find_scripts(role, choices, ledger)
    tree: Tree = {
        "apiVersion": "trainchart/v1",
        "kind": "Model",
        "name": choices.name,
        "description": f"The model {choices.name}, imported from a {training.kind}.",
        "image": _image_section(image, roles, choices, ledger),
    }
    framework = {"tensorflow": image.tensorflow} if image.tensorflow and not choices.code else {}
    if any(role.settings.get("gpus") for role in roles):
        framework["flavour"] = "gpu"
    tree |= {"framework": framework} if framework else {}
    leader = roles[0]
    hyperparameters = lift_hyperparameters([role.command.words for role in roles])
    tree["code"] = {"path": choices.code or f"training/{choices.name}", "command": leader.command.words}
    tree |= {"strategy": strategy, "roles": _roles_section(roles)}
    tree |= _shared_settings(tree["roles"])
    tree |= _volumes_section(roles, ledger)
    tree |= {"hyperparameters": hyperparameters} if hyperparameters else {}
    tree |= {"gpu": {"resourceName": gpu}} if gpu != GPU else {}
    _add_own_image(tree, roles, choices, ledger)
    accounts = sorted({role.service_account for role in roles if role.service_account})
    if accounts:
        tree["serviceAccount"] = {"create": False, "name": accounts[0]}
    merge_into(tree, training.settings)
    return tree


def merge_into(tree: Tree, more: Mapping[str, Any]) -> None:
    """Add the keys of `more` to a tree, within its sections; what is there stays."""
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(tree.get(key), dict):
            merge_into(tree[key], value)
        else:
            tree.setdefault(key, value)


def _choose_image(specs: list[RoleSpec], choices: Choices, ledger: Ledger) -> ImportedImage:
    main = _leader(specs)
    reference = choices.image or ("" if choices.code else main.image)
    if choices.code and not choices.image:
        if main.image:
            ledger.leave((*main.place, "image"), "trainchart image builds an image from --code", "name yours in image")
        return ImportedImage(f"{REGISTRY}/{choices.name}", "0.1.0")
    image = read_image(reference)
    if image is None:
        ledger.leave((*main.place, "image"), f"{reference[:100]!r} is not an image reference", "name it in image")
        return ImportedImage(f"{REGISTRY}/{choices.name}", UNKNOWN_TAG)
    ledger.carry((*main.place, "image"), "image")
    if image.is_moving:
        reason = f"{reference} is a moving tag, so one chart version could train different code"
        ledger.leave(
            (*main.place, "image"), reason, f"replace {UNKNOWN_TAG} in image.tag by a fixed tag, or set image.digest"
        )
    for role in specs:
        if not choices.image and role.image and role.image != reference:
            reason = f"all roles share one image, and {role.role} has {role.image[:100]}"
            ledger.leave((*role.place, "image"), reason, f"{reference} is used: it must be able to run every role")
    return image


def _leader(specs: list[RoleSpec]) -> RoleSpec:
    """Return the role whose image and command are the chart's: workers, or the one that leads without any."""
    order = (WORKER, CHIEF, PS, EVALUATOR)
    return min(specs, key=lambda role: order.index(role.role))


def _choose_strategy(specs: list[RoleSpec], choices: Choices, image: ImportedImage, ledger: Ledger) -> str:
    main = _leader(specs)
    evidence = Evidence(
        {role.role: role.replicas for role in specs},
        int(main.settings.get("gpus", 0)),
        tuple(main.command.words),
        any(role.command.has_place_flags for role in specs),
        image.tensorflow,
    )
    if choices.strategy:
        return choices.strategy
    chosen = choose_strategy(evidence)
    if chosen.doubt:
        ledger.note(f"the strategy is {chosen.name}: {chosen.doubt} (--strategy, or one word in the spec)")
    return chosen.name


def _fit_roles(specs: list[RoleSpec], strategy: str, ledger: Ledger) -> list[RoleSpec]:
    """Return the roles that the strategy has, the leader first; a chief that it does not have becomes worker 0."""
    allowed = STRATEGIES[strategy].roles
    found = {role.role: role for role in specs if role.replicas or role.role != EVALUATOR}
    chief = found.get(CHIEF)
    if chief is not None and CHIEF not in allowed:
        del found[CHIEF]
        worker = found.get(WORKER)
        count = chief.replicas + (worker.replicas if worker else 0)
        found[WORKER] = replace(worker or chief, role=WORKER, replicas=count)
        ledger.carry(chief.place[:3], "roles.worker: worker 0 leads")
        if worker and worker.settings != chief.settings:
            ledger.leave(
                chief.place[:3],
                f"{strategy} has no chief: worker 0 leads, with the settings of workers",
                "set what it needs for roles.worker",
            )
    elif chief is not None and chief.replicas > 1:
        ledger.leave(chief.place[:3], f"{chief.replicas} chiefs: exactly one leads a training run", "")
        found[CHIEF] = replace(chief, replicas=1)
    elif chief is not None and WORKER not in found and not allowed[WORKER].minimum:
        pass
    for role in list(found):
        if role not in allowed:
            ledger.leave(found[role].place[:3], f"{strategy} has no {role}")
            del found[role]
    if found.get(EVALUATOR) and found[EVALUATOR].replicas > 1:
        ledger.leave(
            found[EVALUATOR].place[:3], "several evaluators would evaluate the same checkpoints", "one is kept"
        )
        found[EVALUATOR] = replace(found[EVALUATOR], replicas=1)
    order = sorted(found.values(), key=lambda role: ROLES.index(role.role))
    return order or [replace(_leader(specs), role=WORKER)]


def _find_scripts(role: RoleSpec, choices: Choices, ledger: Ledger) -> None:
    """Name scripts by where they are in the folder of the code, which is where the program starts."""
    words = role.command.words
    for number, word in enumerate(words):
        name = word.rpartition("/")[2]
        if is_python_file(word) and name in choices.scripts:
            words[number] = choices.scripts[name]
            role.settings.pop("workingDir", None)
            ledger.carry((*role.place, "command"), f"code.command: {word} is {choices.scripts[name]} in {choices.code}")


def _image_section(image: ImportedImage, roles: list[RoleSpec], choices: Choices, ledger: Ledger) -> Tree:
    section = image.settings
    for role in roles:
        for key, value in role.image_settings.items():
            section.setdefault(key, value)
    if choices.code:
        section.pop("pullPolicy", None)
    else:
        section["injectLauncher"] = True
    return section


def _roles_section(roles: list[RoleSpec]) -> Tree:
    leader = roles[0].command.words
    section: Tree = {}
    for role in roles:
        own = {"command": role.command.words} if role.command.words != leader else {}
        section[role.role] = {"replicas": role.replicas, **role.settings, **own}
    return section


def _shared_settings(roles: Tree) -> Tree:
    """Move what all roles say alike to the top of the spec, and return it."""
    shared: Tree = {}
    names = {key: None for role in roles.values() for key in role if key in _OWN_SETTINGS}
    for key in names:
        values = [role.get(key) for role in roles.values()]
        if key == "env":
            common = {
                name: value
                for name, value in (values[0] or {}).items()
                if all(name in (other or {}) and other[name] == value for other in values)
            }
            for role in roles.values():
                rest = {name: value for name, value in role.get("env", {}).items() if name not in common}
                role.pop("env", None)
                role |= {"env": rest} if rest else {}
            shared |= {"env": common} if common else {}
        elif all(value == values[0] for value in values):
            shared[key] = values[0]
            for role in roles.values():
                del role[key]
    return shared


def _volumes_section(roles: list[RoleSpec], ledger: Ledger) -> Tree:
    volumes = merge_mounts({role.role: role.mounts for role in roles}, [role.role for role in roles], roles[0].role)
    if "checkpoints" not in volumes:
        if any(role.role == EVALUATOR for role in roles):
            volumes["checkpoints"] = {"size": "5Gi", "mountPath": "/checkpoints"}
            ledger.note(
                "volumes.checkpoints is new: an evaluator reads there what the leader saves; let the program save to "
                "$(TRAINCHART_CHECKPOINTS_DIR)"
            )
        elif volumes:
            ledger.note("no volume is called checkpoints: rename the one to which the program saves")
        else:
            ledger.note(
                "the input mounts no claim: what the program saves is lost with its pod; add volumes.checkpoints"
            )
    return {"volumes": volumes} if volumes else {}


def _add_own_image(tree: Tree, roles: list[RoleSpec], choices: Choices, ledger: Ledger) -> None:
    """Add what an image from elsewhere needs: the launcher, a user that is not root, and a home that can be written."""
    if choices.code:
        return
    if choices.runtime_image or not choices.has_runtime_image:
        tree["run"] = {"controller": {"image": choices.runtime_image or RUNTIME_IMAGE}}
    if not choices.runtime_image and not choices.has_runtime_image:
        ledger.note(
            f"the launcher comes from the runtime image: replace {RUNTIME_IMAGE} in run.controller.image by yours "
            "(trainchart image push --runtime REPOSITORY prints it); the training image needs python3, 3.8 or newer"
        )
    if not all(role.has_user for role in roles):
        context = tree.setdefault("podSecurityContext", {})
        context.setdefault("runAsUser", _USER)
        tree.setdefault("env", {}).setdefault("HOME", "/tmp")
        ledger.note(
            f"pods run as user {_USER} with a read-only root: set podSecurityContext.runAsUser if the image has a user "
            "of its own"
        )
    if not all(role.command.is_known for role in roles):
        ledger.note(
            "the input names no program: put the image's entrypoint (docker image inspect shows it) into code.command"
        )
    if not any(role.settings.get("memory") for role in roles):
        ledger.note("the input requests no memory: pods get the default, 2Gi, and no more; set roles.ROLE.memory")
    ledger.note("the code is in the image: for `trainchart run`, import again with --code FOLDER")
