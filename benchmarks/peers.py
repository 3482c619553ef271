"""The same Kubernetes objects by other means: helm's own scaffold, cdk8s, and plain Jinja."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.generator import KUBERNETES, ROOT
from benchmarks.measure import Row, program, time_by_turns
from tests.cluster.testcluster.cache_folder import find_cache
from trainchart.helm.io.choose import find_engine
from trainchart.kubernetes_yaml import dump_mapping

_TRAINCHART = Path(sys.executable).with_name("trainchart")
_CDK8S = {"cdk8s": "2.70.106", "constructs": "10.8.1"}
_SYNTH = """
const {App, Chart, ApiObject} = require('cdk8s');
const app = new App({outdir: process.argv[3]});
const chart = new Chart(app, 'mnist', {disableResourceNameHashes: true});
JSON.parse(require('fs').readFileSync(process.argv[2])).forEach((object, n) => new ApiObject(chart, `o${n}`, object));
app.synth();
"""
_JINJA = """
import sys, jinja2
environment = jinja2.Environment(loader=jinja2.FileSystemLoader(sys.argv[1]), undefined=jinja2.StrictUndefined)
for name in environment.list_templates():
    sys.stdout.write(environment.get_template(name).render(release="exp"))
"""


def measure_peers(helm: Path) -> list[Row]:
    """Measure from nothing to manifests: trainchart's generate and template, and what others do for the same."""
    chart = ROOT / "charts" / "mnist"
    manifests = find_engine("sdk").render(chart, release="exp").manifests
    objects = [dict(manifest.document) for manifest in manifests]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "objects.json").write_text(json.dumps(objects))
        (folder / "templates").mkdir()
        for number, document in enumerate(objects):
            text = dump_mapping(document).replace("exp-mnist", "{{ release }}-mnist")
            (folder / "templates" / f"{number:02}.yaml").write_text(f"---\n{text}")
        (folder / "synth.js").write_text(_SYNTH)
        (folder / "render.py").write_text(_JINJA)
        contenders: dict[str, Callable[[], object]] = {
            "`trainchart generate` + `helm template`": _generate_and_template(helm, folder),
            "`helm create` + `helm template` (3 objects, for web servers)": _create_and_template(helm, folder),
            f"plain Jinja, {len(objects)} objects": program(
                [sys.executable, folder / "render.py", folder / "templates"]
            ),
        }
        node = _install_cdk8s()
        note = ""
        if node is None:
            note = "cdk8s is not measured: npm could not install it here"
        else:
            (node / "synth.js").write_text(_SYNTH)
            synth: list[str | Path] = ["node", node / "synth.js", folder / "objects.json", folder / "dist"]
            contenders[f"cdk8s {_CDK8S['cdk8s']} synth, {len(objects)} objects"] = program(synth)
        taken = time_by_turns(contenders)
    rows = [Row(what, seconds * 1000, "ms") for what, seconds in taken.items()]
    return [*rows, Row("", 0, "", note=note)] if note else rows


def _generate_and_template(helm: Path, folder: Path) -> Callable[[], object]:
    generate = program([_TRAINCHART, "generate", "mnist", "--output", folder / "charts"], cwd=ROOT)
    template = program([helm, "template", "exp", folder / "charts" / "mnist", "--kube-version", KUBERNETES])

    def run() -> None:
        shutil.rmtree(folder / "charts", ignore_errors=True)
        generate()
        template()

    return run


def _create_and_template(helm: Path, folder: Path) -> Callable[[], object]:
    create = program([helm, "create", folder / "web"])
    template = program([helm, "template", "exp", folder / "web", "--kube-version", KUBERNETES])

    def run() -> None:
        shutil.rmtree(folder / "web", ignore_errors=True)
        create()
        template()

    return run


def _install_cdk8s() -> Path | None:
    """Return a folder in the user's cache that has cdk8s in it, or None where npm cannot put it there."""
    folder = find_cache(os.environ, "benchmarks") / "cdk8s"
    if (folder / "node_modules" / "cdk8s").is_dir():
        return folder
    if shutil.which("npm") is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    packages = [f"{name}@{version}" for name, version in _CDK8S.items()]
    install = ["npm", "install", "--silent", "--prefix", str(folder), *packages]
    done = subprocess.run(install, capture_output=True, check=False)
    return folder if done.returncode == 0 else None
