"""Upgrades a release with the helm program: a chart given as files, the release's own values, and some new ones."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainchart.errors import ToolError
from trainchart.helm.io.binary import run_helm
from trainchart.helm.rendering import ReleaseTexts, read_release_texts
from trainchart.json_documents import parse_json

TIMEOUT_SECONDS = 300.0
_WORDS_KEPT = 1500
_RENDERER = "trainchart-kept"


@dataclass(frozen=True)
class HelmUpgrade:
    """One upgrade that keeps the values of the release, apart from `sets`, or replaces all of them by `values`."""

    release: str
    namespace: str
    context: str
    files: Mapping[str, bytes]
    sets: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] | None = None
    """All values that the user gives; None: those that were given before."""
    description: str = ""
    objects: str = ""
    """What it writes in place of what the chart renders."""
    kubeconfig: str = ""
    """As of `environment_of`."""


def runs_helm_3() -> bool:
    """Return whether the helm program is of version 3: later ones take post-renderers as plugins, and hand them hooks.

    Raises:
        ToolError: helm is not installed, or it fails.
    """
    return run_on_cluster(["version", "--template={{.Version}}"], os.environ).startswith("v3.")


def render_upgrade(upgrade: HelmUpgrade) -> ReleaseTexts:
    """Return the objects that the upgrade would write, without a post-renderer; nothing is changed.

    Raises:
        ToolError: helm is not installed, or it fails; the error has helm's output.
    """
    with _written(upgrade) as argv:
        printed = run_on_cluster([*argv, "--dry-run=server", "--output=json"], environment_of(upgrade.kubeconfig))
    try:
        return read_release_texts(parse_json(printed))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ToolError(f"cannot read what helm upgrade --dry-run prints: {error!r:.200}") from error


def run_upgrade(upgrade: HelmUpgrade, *, is_helm_3: bool = False) -> None:
    """Run `helm upgrade`.

    Raises:
        ToolError: helm is not installed, or it fails; the error has helm's output.
    """
    # With the user's HELM_ variables, which may say where Helm keeps its releases.
    environment = environment_of(upgrade.kubeconfig)
    with _written(upgrade) as argv, tempfile.TemporaryDirectory(prefix="trainchart-objects-") as folder:
        if upgrade.objects:
            argv += _write_renderer(Path(folder), upgrade.objects, is_helm_3=is_helm_3)
            environment["HELM_PLUGINS"] = folder
        run_on_cluster(argv, environment)


def _write_renderer(folder: Path, objects: str, *, is_helm_3: bool) -> list[str]:
    """Write a post-renderer that prints `objects` into `folder`, and return the options that name it."""
    file = folder / _RENDERER / "objects.yaml"
    file.parent.mkdir()
    file.write_text(objects, encoding="utf-8")
    program = shutil.which("cat") or "cat"
    if is_helm_3:
        return [f"--post-renderer={program}", f"--post-renderer-args={file}"]
    plugin = {
        "apiVersion": "v1",
        "name": _RENDERER,
        "version": "1.0.0",
        "type": "postrenderer/v1",
        "runtime": "subprocess",
        "runtimeConfig": {"platformCommand": [{"command": program, "args": [str(file)]}]},
    }
    (file.parent / "plugin.yaml").write_text(json.dumps(plugin), encoding="utf-8")
    return [f"--post-renderer={_RENDERER}"]


@contextmanager
def _written(upgrade: HelmUpgrade) -> Iterator[list[str]]:
    """Yield the arguments of an upgrade to a chart that is written for as long."""
    with (
        tempfile.TemporaryDirectory(prefix="trainchart-chart-") as folder,
        tempfile.TemporaryDirectory(prefix="trainchart-values-") as values,
    ):
        _write_chart(Path(folder), upgrade.files)
        argv = ["upgrade", upgrade.release, folder, f"--namespace={upgrade.namespace}"]
        argv += ["--reuse-values"] if upgrade.values is None else _write_values(Path(values), upgrade.values)
        argv += [f"--kube-context={upgrade.context}"] if upgrade.context else []
        argv += [f"--description={upgrade.description}"] if upgrade.description else []
        # Texts: an id such as 20261121 must not become a number.
        yield argv + [f"--set-string={key}={value}" for key, value in upgrade.sets.items()]


def _write_chart(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except (OSError, ValueError) as error:
            # As of a full disk, or a record of Helm in which one file is the folder of another.
            raise ToolError(f"cannot write the file {name!r:.200} of the chart: {error!s:.200}") from error


def _write_values(folder: Path, values: Mapping[str, Any]) -> list[str]:
    """Write values into `folder`, and return the options that make them all that the user gives."""
    file = folder / "values.yaml"
    # JSON is YAML. Of several lines: some helm versions ignore one line of exactly n * 4096 bytes, helm/helm#32506.
    file.write_text(f"{json.dumps(values, indent=1)}\n", encoding="utf-8")
    return ["--reset-values", f"--values={file}"]


def environment_of(kubeconfig: str) -> dict[str, str]:
    """Return the environment of helm for a kubeconfig of its own, beside which helm keeps its files; empty: the user's.

    What is in it appears in no list of processes.
    """
    if not kubeconfig:
        return dict(os.environ)
    folder = Path(kubeconfig).parent / "helm"
    homes = {f"HELM_{name}_HOME": str(folder / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
    return {**os.environ, **homes, "KUBECONFIG": kubeconfig}


def run_on_cluster(argv: Sequence[str], environment: Mapping[str, str], *, given: str = "") -> str:
    """Run the helm program on PATH with the user's cluster, `given` as its input, and return what it prints.

    Raises:
        ToolError: helm is not installed, or it fails; the error has helm's output.
    """
    program = shutil.which("helm")
    if program is None:
        raise ToolError(
            "there is no helm program on PATH, but one is needed to change releases",
            hint="install helm 3 or 4: https://helm.sh/docs/intro/install/",
        )
    done = run_helm(Path(program), argv, environment, TIMEOUT_SECONDS, given=given)
    if done.returncode != 0:
        words = done.stderr.strip()[-_WORDS_KEPT:]
        raise ToolError(
            f"helm {argv[0]} exited with {done.returncode}: {words}", hint="see: helm history and helm status"
        )
    return done.stdout
