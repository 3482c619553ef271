"""The shape of the code, enforced: deciding is apart from acting, layers do not leak, a library has one owner."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "generator" / "trainchart"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RUNTIME = ROOT / "training-images" / "runtime" / "trainchart_runtime"
LAUNCHER = ROOT / "training-images" / "launcher" / "trainchart_launcher"
CONTROLLER = ROOT / "training-images" / "controller" / "trainchart_controller"
TRAINING = ROOT / "training-images" / "training" / "trainchart_training"
SERVING = ROOT / "training-images" / "serving" / "trainchart_serving"
MODULES = sorted(
    module for root in (PACKAGE, RUNTIME, LAUNCHER, CONTROLLER, TRAINING, SERVING) for module in root.rglob("*.py")
)

LONGEST_MODULE = 400
ACTING = {"io", "host", "actions", "cli"}
"""Folders whose modules meet the outside: files, processes, sockets, clocks. All others decide, and are pure."""
ACTING_MODULES = {"api.py", "resources.py", "__main__.py"}
IMPURE = {
    *("asyncio", "concurrent", "ctypes", "fcntl", "ftplib", "getpass", "glob", "http", "importlib", "mmap"),
    *("multiprocessing", "os", "pathlib", "platform", "queue", "random", "secrets", "select", "selectors", "shutil"),
    *("signal", "socket", "socketserver", "sqlite3", "ssl", "subprocess", "tempfile", "threading", "time", "uuid"),
    *("helm_python", "httpx2", "lightkube", "psutil", "starlette", "uvicorn", "webbrowser"),
}
PURE_PARTS = {"pathlib": {"PurePath", "PurePosixPath"}, "signal": {"Signals"}}
"""What is pure of a library that otherwise is not."""
SIBLINGS = {"cluster", "console", "helm", "images", "local", "publish", "serving"}
"""Each owns one outside thing: none knows another, and all may use host/, which knows none of them."""
SHARED_BY_SIBLINGS = "trainchart.helm.rendering"
"""What an engine renders, and what it is given."""
WITHOUT_TENSORFLOW = (
    *(
        "definition.py",
        "errors.py",
        "hyperparameters.py",
        "place.py",
        "saving/catalogue.py",
        "saving/origin.py",
        "saving/resume.py",
    ),
)
OWNERS = {
    "helm_python": {"helm/io/sdk.py"},
    "http": {
        *("trainchart_controller/api.py", "trainchart_controller/launchers.py", "trainchart_controller/notify.py"),
        *("trainchart_controller/short_response.py", "trainchart_serving/fetch.py"),
    },
    "httpx2": {"cluster/io/kubernetes_api.py", "publish/io/http.py", "serving/io/rest_client.py"},
    "jinja2": {"console/pages.py", "render/chart.py", "render/layers.py", "render/sandbox.py", "render/templates.py"},
    "jsonschema": {
        *("check/kubernetes_schemas.py", "check/rules/values.py", "families/schemas.py", "plan/misfits.py"),
        "schema_validation.py",
    },
    "lightkube": {"cluster/io/kubernetes_api.py"},
    "psutil": {"local/io/process_table.py"},
    "yaml": {"kubernetes_yaml.py", "spec/document.py", "spec/edit.py", "yaml_limits.py", "yaml_loader.py"},
    "cel_expr_python": {"packs/expressions.py"},
    "yamllint": {"check/yaml_style.py"},
    "semver": {"chart_version.py"},
    "starlette": {
        *("console/io/app.py", "console/io/code_door.py", "console/io/guard.py", "console/io/installing.py"),
        *("console/io/serve.py", "console/io/servers.py", "console/io/token_door.py", "trainchart_serving/rest.py"),
    },
    "uvicorn": {"console/io/serve.py", "trainchart_serving/server.py"},
}


@functools.cache
def parse(module: Path) -> ast.Module:
    return ast.parse(module.read_text())


def relative(module: Path) -> str:
    for root in (PACKAGE, RUNTIME.parent, LAUNCHER.parent, CONTROLLER.parent, TRAINING.parent, SERVING.parent):
        if module.is_relative_to(root):
            return module.relative_to(root).as_posix()
    raise AssertionError(module)


def imports(module: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield every imported module and the names taken from it, imports inside functions included."""
    for node in ast.walk(parse(module)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, tuple(alias.name for alias in node.names)


def dotted(module: Path) -> str:
    """Return the name that others import a module by."""
    name = ".".join(relative(module).removesuffix(".py").removesuffix("/__init__").split("/"))
    return f"trainchart.{name}" if module.is_relative_to(PACKAGE) else name


def used_modules(module: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """Yield the modules of `known` that a module imports, also where it takes them from their package."""
    for name, taken in imports(module):
        parts = [f"{name}.{part}" for part in taken if f"{name}.{part}" in known]
        yield from parts
        if name in known and (not taken or len(parts) < len(taken)):
            yield name


def folder(name: str) -> str:
    """Return the folder of trainchart that a dotted module name lies in."""
    parts = name.split(".")
    return parts[1] if parts[0] == "trainchart" and len(parts) > 1 else ""


def is_pure(module: Path) -> bool:
    """Whether a module must be pure: by its path, or by its docstring where launcher, controller or library hold it."""
    if not module.is_relative_to(PACKAGE) and not module.is_relative_to(RUNTIME):
        is_named = module.is_relative_to(TRAINING) and module.relative_to(TRAINING).as_posix() in WITHOUT_TENSORFLOW
        return is_named or "Pure" in (ast.get_docstring(parse(module)) or "")
    parts = module.relative_to(PACKAGE if module.is_relative_to(PACKAGE) else RUNTIME).parts
    return not ACTING & set(parts[:-1]) and not (len(parts) == 1 and parts[0] in ACTING_MODULES)


@pytest.mark.parametrize("module", MODULES, ids=relative)
def test_modules_are_short_and_say_what_they_hold(module: Path) -> None:
    text = module.read_text()
    assert len(text.splitlines()) <= LONGEST_MODULE
    assert ast.get_docstring(parse(module)), "a module starts by saying what lives in it"


@pytest.mark.parametrize("module", filter(is_pure, MODULES), ids=relative)
def test_pure_modules_touch_nothing_outside(module: Path) -> None:
    for name, taken in imports(module):
        top = name.split(".")[0]
        assert top not in IMPURE or (taken and set(taken) <= PURE_PARTS.get(top, set())), name
        path = [*name.split("."), *taken]
        assert path[0] not in ("trainchart", RUNTIME.name) or not (ACTING | {"resources"}) & set(path[1:]), name


@pytest.mark.parametrize("package", sorted({*SIBLINGS, "host"}))
def test_owners_of_one_outside_thing_do_not_know_each_other(package: str) -> None:
    for module in (PACKAGE / package).rglob("*.py"):
        for name, _ in imports(module):
            others = (SIBLINGS - {package}) | {"actions", "cli"}
            assert folder(name) not in others or name == SHARED_BY_SIBLINGS, f"{relative(module)}: {name}"


def test_no_imports_run_in_a_circle() -> None:
    known = {dotted(module): module for module in MODULES}
    uses = {name: {used for used in used_modules(module, known) if used != name} for name, module in known.items()}
    TopologicalSorter(uses).prepare()


def test_commands_parse_call_an_action_and_print() -> None:
    for module in (PACKAGE / "cli").glob("*.py"):
        known = {folder(name) for name, _ in imports(module)} - {""}
        # A command may name the types that its action takes and gives, so that it can print them.
        assert not known & {"render", "spec", "host", "archive", "publish", "helm"}, relative(module)


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
    for module in [*RUNTIME.rglob("*.py"), *package.rglob("*.py")]:
        for name, _ in imports(module):
            top = name.split(".")[0]
            allowed = top in sys.stdlib_module_names or top in ("trainchart_runtime", package.name)
            # NVML is read where the image has its library, and left out elsewhere.
            is_optional = top == "pynvml" and module.name == "use.py"
            assert allowed or is_optional or "hatch" in module.name, f"{relative(module)} imports {name}"


def test_the_training_library_needs_nothing_but_tensorflow() -> None:
    # Keras and NumPy come with TensorFlow.
    allowed = {*sys.stdlib_module_names, "trainchart_training", "tensorflow", "keras", "numpy"}
    for module in TRAINING.rglob("*.py"):
        foreign = {name.split(".")[0] for name, _ in imports(module)} - allowed
        assert not foreign, relative(module)
    for module in (TRAINING / name for name in WITHOUT_TENSORFLOW):
        known = {name.split(".")[0] for name, _ in imports(module)}
        assert not known & {"tensorflow", "keras", "numpy"}, relative(module)


def test_the_model_server_names_all_that_it_needs() -> None:
    allowed = {*sys.stdlib_module_names, SERVING.name, "tensorflow", "tensorflow_serving", "numpy", "google"}
    allowed |= {"grpc", "grpc_health", "prometheus_client", "starlette", "uvicorn", "trainchart_runtime"}
    for module in SERVING.rglob("*.py"):
        foreign = {name.split(".")[0] for name, _ in imports(module)} - allowed
        assert not foreign, relative(module)


def test_functions_are_short() -> None:
    long = [
        f"{relative(module)}:{node.name}"
        for module in MODULES
        for node in ast.walk(parse(module))
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
    """`json.loads` raises RecursionError for what is nested deep: json_documents.py makes an ordinary error of it."""
    allowed = {"json_documents.py", "render/values_yaml.py", "host/kubernetes_schemas.py", "check/rules/values.py"}
    allowed.add(
        "cluster/io/probe_program.py"
    )  # runs in pods, where there is no trainchart, and reads doctor's own JSON
    found = {relative(module) for module in PACKAGE.rglob("*.py") if "json.loads(" in module.read_text()}
    assert found == allowed


def test_every_library_is_declared() -> None:
    declared = {re.split(r"[<>=~\[]", entry)[0] for entry in PROJECT["dependencies"]}
    declared |= {
        re.split(r"[<>=~\[]", entry)[0] for part in PROJECT["optional-dependencies"].values() for entry in part
    }
    names = {"cel_expr_python": "cel-expr-python", "yaml": "pyyaml", "kubernetes_validate": "kubernetes-validate"}
    names |= {
        "helm_python": "helm-python-sdk",
        "pydantic_core": "pydantic",
        "click": "typer",
    }  # click comes with typer, and has its exceptions
    ours = {"trainchart", "trainchart_runtime", "trainchart_launcher", "trainchart_controller", "trainchart_training"}
    used = {name.split(".")[0] for module in PACKAGE.rglob("*.py") for name, _ in imports(module)}
    foreign = used - ours - set(sys.stdlib_module_names)
    assert {names.get(name, name) for name in foreign} <= declared


@pytest.mark.parametrize("action", ["checkpoints", "list", "logs", "status", "top", "wait"])
def test_looking_at_a_run_does_not_load_the_models_of_specs(action: str) -> None:
    """People on call wait for these commands, and pydantic takes as long as half of all that they need."""
    call = f"app(['{action}', '--help'], standalone_mode=False)"
    code = f"import sys, trainchart.actions.{action}; from trainchart.cli.app import app; {call}"
    code += "; print('pydantic' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines()[-1] == "False"
