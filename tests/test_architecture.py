"""The shape of the code, enforced: deciding is apart from acting, layers do not leak, a library has one owner."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "generator" / "trainchart"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SHARED_SERVER = "trainchart_runtime/pages.py"
"""Acts, but launcher and run controller share nothing else that both could hold."""
RUNTIME = ROOT / "training-images" / "runtime" / "trainchart_runtime"
LAUNCHER = ROOT / "training-images" / "launcher" / "trainchart_launcher"
CONTROLLER = ROOT / "training-images" / "controller" / "trainchart_controller"
TRAINING = ROOT / "training-images" / "training" / "trainchart_training"
MODULES = sorted(module for root in (PACKAGE, RUNTIME, LAUNCHER, CONTROLLER, TRAINING) for module in root.rglob("*.py"))

LONGEST_MODULE = 400
IMPURE = {"os", "subprocess", "socket", "tempfile", "random", "time", "shutil", "threading", "asyncio", "pathlib"}
PURE_FOLDERS = {"spec", "plan", "scaffold", "render", "check", "archive", "compare", "reports"}
PURE_FILES = {
    "local/plan.py",
    "rendering.py",
    "errors.py",
    "cluster/control.py",
    "cluster/diagnosis.py",
    "cluster/gpus.py",
    "cluster/helm_record.py",
    "cluster/log_lines.py",
    "cluster/objects.py",
    "cluster/record.py",
    "cluster/sighting.py",
    "cluster/stalls.py",
    "images/builders.py",
    "images/choices.py",
    "images/failures.py",
    "images/ignore.py",
    "images/ignore_patterns.py",
    "images/inputs.py",
    "images/plan.py",
    "images/platforms.py",
    "images/requirements.py",
    "trainchart_training/catalogue.py",
    "trainchart_training/definition.py",
    "trainchart_training/errors.py",
    "trainchart_training/hyperparameters.py",
    "trainchart_training/place.py",
    "publish/credentials.py",
    "publish/image_reference.py",
    "publish/index.py",
    "publish/location.py",
    "publish/oci_manifest.py",
    "publish/oci_referrer.py",
    "publish/repository.py",
}
ACTING_FOLDERS = {"cluster", "host", "images", "local", "publish"}
OWNERS = {
    "helm_python": {"host/helm_sdk.py"},
    "http": {"trainchart_controller/api.py", "trainchart_controller/launchers.py"},
    "httpx2": {"cluster/kubernetes_api.py", "publish/http.py"},
    "jinja2": {"render/chart.py"},
    "jsonschema": {"check/kubernetes_schemas.py", "check/rules/values.py", "render/misfits.py"},
    "lightkube": {"cluster/kubernetes_api.py"},
    "psutil": {"local/process_table.py"},
    "ruamel": {"spec/document.py", "spec/edit.py"},
    "yaml": {"kubernetes_yaml.py", "yaml_limits.py"},
    "yamllint": {"check/yaml_style.py"},
    "semver": {"chart_version.py"},
}


def relative(module: Path) -> str:
    for root in (PACKAGE, RUNTIME.parent, LAUNCHER.parent, CONTROLLER.parent, TRAINING.parent):
        if module.is_relative_to(root):
            return module.relative_to(root).as_posix()
    raise AssertionError(module)


def imports(module: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield every imported module and the names taken from it, imports inside functions included."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, tuple(alias.name for alias in node.names)


def folder(name: str) -> str:
    """Return the folder of trainchart that a dotted module name lies in."""
    parts = name.split(".")
    return parts[1] if parts[0] == "trainchart" and len(parts) > 1 else ""


def is_pure(name: str) -> bool:
    is_shared = name.startswith("trainchart_runtime/") and name != SHARED_SERVER
    return name.split("/")[0] in PURE_FOLDERS or name in PURE_FILES or is_shared


@pytest.mark.parametrize("module", MODULES, ids=relative)
def test_modules_are_short_and_say_what_they_hold(module: Path) -> None:
    text = module.read_text()
    assert len(text.splitlines()) <= LONGEST_MODULE
    assert ast.get_docstring(ast.parse(text)), "a module starts by saying what lives in it"


@pytest.mark.parametrize("module", [m for m in MODULES if is_pure(relative(m))], ids=relative)
def test_deciding_code_touches_nothing_outside(module: Path) -> None:
    for name, taken in imports(module):
        top = name.split(".")[0]
        if top == "pathlib":
            assert set(taken) <= {"PurePosixPath"}
        else:
            assert top not in IMPURE
        # A pure file of an acting folder knows the pure files beside it.
        foreign = (ACTING_FOLDERS | {"actions", "cli"}) - {relative(module).split("/")[0]}
        assert folder(name) not in foreign


@pytest.mark.parametrize("acting", sorted(ACTING_FOLDERS))
def test_acting_code_does_not_know_its_siblings_or_its_callers(acting: str) -> None:
    for module in (PACKAGE / acting).rglob("*.py"):
        known = {folder(name) for name, _ in imports(module)}
        assert not known & ((ACTING_FOLDERS - {acting}) | {"actions", "cli"}), relative(module)


def test_commands_parse_call_an_action_and_print() -> None:
    for module in (PACKAGE / "cli").glob("*.py"):
        known = {folder(name) for name, _ in imports(module)} - {""}
        # A command may name the types that its action takes and gives, so that it can print them.
        assert not known & {"render", "spec", "host", "archive", "publish"}, relative(module)


def test_the_flow_never_turns_back() -> None:
    order = ["spec", "plan", "render"]
    for index, stage in enumerate(order):
        for module in (PACKAGE / stage).rglob("*.py"):
            known = {folder(name) for name, _ in imports(module)}
            assert not known & (set(order[index + 1 :]) | {"check", "archive"}), relative(module)


@pytest.mark.parametrize("library", sorted(OWNERS))
def test_a_library_has_one_owner(library: str) -> None:
    users = {relative(m) for m in MODULES if any(name.split(".")[0] == library for name, _ in imports(m))}
    assert users == OWNERS[library]


@pytest.mark.parametrize("package", [LAUNCHER, CONTROLLER], ids=lambda package: package.name)
def test_a_zipapp_needs_the_standard_library_only(package: Path) -> None:
    import sys

    for module in [*RUNTIME.rglob("*.py"), *package.rglob("*.py")]:
        for name, _ in imports(module):
            top = name.split(".")[0]
            allowed = top in sys.stdlib_module_names or top in ("trainchart_runtime", package.name)
            assert allowed or "hatch" in module.name, f"{relative(module)} imports {name}"


def test_the_training_library_needs_nothing_but_tensorflow() -> None:
    import sys

    # Keras and NumPy come with TensorFlow.
    allowed = {*sys.stdlib_module_names, "trainchart_training", "tensorflow", "keras", "numpy"}
    for module in TRAINING.rglob("*.py"):
        foreign = {name.split(".")[0] for name, _ in imports(module)} - allowed
        assert not foreign, relative(module)
    pure = [TRAINING.parent / name for name in PURE_FILES if name.startswith(TRAINING.name)]
    for module in pure:
        known = {name.split(".")[0] for name, _ in imports(module)}
        assert not known & {"tensorflow", "keras", "numpy"}, relative(module)


def test_functions_are_short() -> None:
    long = [
        f"{relative(module)}:{node.name}"
        for module in MODULES
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.body[0].lineno >= 60
    ]
    assert long == []


def test_templates_are_short_and_use_no_tpl() -> None:
    for path in (ROOT / "chart-templates").rglob("templates/**/*"):
        if path.is_file():
            text = path.read_text()
            assert len(text.splitlines()) <= 150, path.name
            assert "tpl ." not in text


def test_json_of_others_is_read_where_its_depth_is_bounded() -> None:
    """`json.loads` raises RecursionError for what is nested deep: json_text.py makes an ordinary error of it."""
    allowed = {"json_text.py", "render/values_yaml.py", "host/kubernetes_schemas.py", "check/rules/values.py"}
    found = {relative(module) for module in PACKAGE.rglob("*.py") if "json.loads(" in module.read_text()}
    assert found == allowed


def test_every_library_is_declared() -> None:
    declared = {re.split(r"[<>=~\[]", entry)[0] for entry in PROJECT["dependencies"]}
    declared |= {
        re.split(r"[<>=~\[]", entry)[0] for part in PROJECT["optional-dependencies"].values() for entry in part
    }
    names = {"ruamel": "ruamel.yaml", "yaml": "pyyaml", "kubernetes_validate": "kubernetes-validate"}
    names |= {
        "helm_python": "helm-python-sdk",
        "pydantic_core": "pydantic",
        "click": "typer",
    }  # click comes with typer, and has its exceptions
    ours = {"trainchart", "trainchart_runtime", "trainchart_launcher", "trainchart_controller", "trainchart_training"}
    used = {name.split(".")[0] for module in PACKAGE.rglob("*.py") for name, _ in imports(module)}
    foreign = used - ours - set(sys.stdlib_module_names)
    assert {names.get(name, name) for name in foreign} <= declared
