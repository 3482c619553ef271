"""`trainchart release`, `versions`, `verify` and `deprecate` as a user meets them, with a real gpg and real helm."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.repositories.chart_servers import PASSWORD, USER, find_server, serve_registry
from tests.support.command_line import call
from trainchart.archive.read import parse_archive

EPOCH = "1767225600"


@pytest.fixture
def project(tmp_path: Path, copy_sources: Callable[..., Path]) -> Path:
    return copy_sources(tmp_path / "project", "models/digits.yaml", "examples/digits")


def run(project: Path, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    known = {**os.environ, "XDG_DATA_HOME": str(project.parent / "data"), "SOURCE_DATE_EPOCH": EPOCH, **environment}
    return call(project, *arguments, environment=known)


def release(project: Path, *arguments: str | Path, **environment: str) -> dict[str, Any]:
    # The image is nowhere; test_images.py has one that is.
    told = ("--format", "json", "--skip-image-check")
    done = run(project, "release", "digits", "--to", "repository", *told, *arguments, **environment)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert isinstance(told, dict)
    return told


def edit(project: Path, old: str, new: str) -> None:
    spec = project / "models" / "digits.yaml"
    text = spec.read_text()
    assert old in text
    spec.write_text(text.replace(old, new, 1))


def published(project: Path, version: str) -> dict[str, bytes]:
    return dict(parse_archive((project / "repository" / f"digits-{version}.tgz").read_bytes()).files)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_five_releases_and_each_a_second_time(project: Path) -> None:
    before = snapshot(project)
    steps = [
        ("", "", "0.1.0"),
        ("description: ", "description: Now ", "0.1.1"),
        ("hyperparameters:\n", "hyperparameters:\n  momentum: {type: number, default: 0.9}\n", "0.2.0"),
        ('tag: "1.0.0"', 'tag: "1.0.1"', "0.2.1"),
        ("  seed: {", "  seedling: {", "1.0.0"),
    ]
    for old, new, version in steps:
        edit(project, old, new)
        first = release(project)
        assert (first["version"], first["isNew"]) == (version, True)
        index = (project / "repository" / "index.yaml").read_bytes()
        second = release(project)
        assert (second["version"], second["isNew"]) == (version, False)
        assert (project / "repository" / "index.yaml").read_bytes() == index
    # Nothing but the repository and the spec that the test edits has changed.
    after = snapshot(project)
    assert {path for path in {*before, *after} if before.get(path) != after.get(path)} == {
        "models/digits.yaml",
        "repository/index.yaml",
        *(f"repository/digits-{version}.tgz" for _, _, version in steps),
    }
    files = published(project, "1.0.0")
    changelog = files["CHANGELOG.md"].decode()
    assert [line for line in changelog.splitlines() if line.startswith("## ")] == [
        f"## {version} - 2026-01-01" for _, _, version in reversed(steps)
    ]
    assert changelog.count("First published version.") == 1
    newest = changelog.split("## 0.2.1")[0]
    assert "- the value hyperparameters.seed is gone" in newest
    assert "### Upgrading" in newest
    chart = yaml.safe_load(files["Chart.yaml"])
    listed = yaml.safe_load(chart["annotations"]["artifacthub.io/changes"])
    assert {"kind": "removed", "description": "the value hyperparameters.seed is gone"} in listed
    assert chart["annotations"]["trainchart/generator"]


def test_a_line_break_in_an_index_makes_no_version(project: Path) -> None:
    (project / "hostile").mkdir()
    entry = {
        "name": "digits",
        "version": "1.0.0",
        "digest": "a\n2.0.0  2026-01-01  b",
        "created": "\n3.0.0",
        "urls": ["x"],
    }
    index = {"apiVersion": "v1", "entries": {"digits": [entry]}}
    (project / "hostile" / "index.yaml").write_text(json.dumps(index))
    lines = run(project, "versions", "digits", "--from", "hostile").stdout.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("1.0.0  3.0.0")


def test_what_is_published_can_be_listed_verified_and_deprecated(project: Path) -> None:
    nothing = run(project, "versions", "digits", "--from", "repository", "--format", "json")
    assert nothing.returncode == 8
    assert json.loads(nothing.stderr)["error"] == "RepositoryNotFound"
    release(project)
    verified = run(project, "verify", "repository/digits-0.1.0.tgz", "--format", "json")
    assert verified.returncode == 0, verified.stderr
    assert json.loads(verified.stdout)["isSigned"] is False
    deprecate = ("deprecate", "digits", "--to", "repository", "--reason", "use 'mnist':\n it is better\n")
    assert "deprecated" in run(project, *deprecate, "--dry-run").stdout.lower()
    done = run(project, *deprecate, SOURCE_DATE_EPOCH=str(int(EPOCH) + 86_400))
    assert done.returncode == 0, done.stderr
    assert run(project, *deprecate).stderr == "digits: nothing has changed since 0.1.1\n"
    told = json.loads(run(project, "versions", "digits", "--from", "repository", "--format", "json").stdout)
    assert [(version["version"], version["isDeprecated"]) for version in told] == [("0.1.1", True), ("0.1.0", False)]
    chart = yaml.safe_load(published(project, "0.1.1")["Chart.yaml"])
    assert yaml.safe_load(chart["annotations"]["artifacthub.io/changes"]) == [
        {"kind": "deprecated", "description": "use 'mnist': it is better"}
    ]
    # It was made from the same, but at another time.
    before = yaml.safe_load(published(project, "0.1.0")["Chart.yaml"])["annotations"]
    for key in ("trainchart/generator", "trainchart/spec-sha256", "trainchart/templates-sha256"):
        assert chart["annotations"][key] == before[key]
    assert before["trainchart/created"].startswith("2026-01-01")
    assert chart["annotations"]["trainchart/created"].startswith("2026-01-02")
    assert run(project, "verify", "repository/digits-0.1.1.tgz").returncode == 0
    refused = run(project, "release", "digits", "--to", "repository")
    assert refused.returncode == 4
    assert "has been deprecated since 0.1.1" in refused.stderr
    compared = run(project, "diff", "digits", "--from", "repository")
    assert compared.stderr == "note: digits has been deprecated since 0.1.1; to undo that, release it with --bump\n"
    shown = json.loads(run(project, "diff", "digits", "--from", "repository", "--format", "json").stdout)
    assert shown["isDeprecated"] is True
    assert release(project, "--bump", "patch")["version"] == "0.1.2"
    lines = run(project, "versions", "digits", "--from", "repository").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["0.1.2", "0.1.1", "0.1.0"]
    assert [line.endswith("deprecated") for line in lines] == [False, True, False]


def test_bump_raises_and_pre_releases_come_before(project: Path) -> None:
    release(project)
    assert release(project, "--bump", "major")["isNew"] is False
    edit(project, "description: ", "description: Now ")
    dry = release(project, "--dry-run")
    assert (dry["version"], dry["isNew"], dry["reference"]) == ("0.1.1", False, "")
    before = release(project, "--pre-release", "dev.12+g1a2b3c")
    assert (before["version"], before["lastVersion"]) == ("0.1.1-dev.12+g1a2b3c", "0.1.0")
    assert release(project, "--pre-release", "dev.12+g1a2b3c")["isNew"] is False
    again = run(
        project, "release", "digits", "--to", "repository", "--pre-release", "dev.12+g1a2b3c", "--skip-image-check"
    )
    assert again.stdout.splitlines()[1] == "  was already published with the same content"
    assert release(project, "--bump", "minor")["version"] == "0.2.0"
    edit(project, "version: 0.1.0", "version: 3.0.0")
    edit(project, "description: ", "description: Right ")
    assert release(project)["version"] == "3.0.0"
    for description in ("description: ", "description: And "):  # the first changes nothing
        edit(project, "description: ", description)
        bad = run(project, "release", "digits", "--to", "repository", "--skip-image-check", "--pre-release", "a b")
        assert bad.returncode == 2
        assert "'a b' is not a valid pre-release" in bad.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("release", "digits", "--to", "repository", "--pre-release", ""),
        ("release", "digits", "--to", "repository", "--sign", " "),
        ("publish", "charts/digits", "--to", "repository", "--sign", ""),
        ("deprecate", "digits", "--to", "repository", "--reason", ""),
    ],
    ids=lambda arguments: f"{arguments[0]} {arguments[-2]}",
)
def test_an_option_without_a_value_is_a_variable_that_is_not_set(project: Path, arguments: tuple[str, ...]) -> None:
    """Else a branch would publish a release, and a release would have no signature, for ever."""
    refused = run(project, *arguments)
    assert refused.returncode == 2
    assert f"Invalid value for {arguments[-2]}: it is empty" in refused.stderr
    assert not (project / "repository").exists()


def test_an_unknown_choice_is_refused_with_those_there_are(project: Path) -> None:
    refused = run(project, "release", "digits", "--to", "repository", "--bump", "huge")
    assert refused.returncode == 2
    assert "Invalid value for '--bump': 'huge' is not one of 'patch', 'minor', 'major'." in refused.stderr


def test_a_wrong_number_is_refused(project: Path) -> None:
    refused = run(project, "logs", "digits-1", "--tail", "x")
    assert refused.returncode == 2
    assert "Invalid value for '--tail': 'x' is not a valid integer" in refused.stderr


def test_a_chart_that_is_not_what_it_says(project: Path) -> None:
    assert run(project, "generate", "digits").returncode == 0
    assert run(project, "verify", "charts/digits").returncode == 0
    lock = project / "charts" / "digits" / "trainchart.lock.yaml"
    generated = lock.read_text()
    made_from = yaml.safe_load(generated)["spec"]["sha256"]
    lock.write_text(generated.replace(made_from, "0" * 64))
    untrue = run(project, "verify", "charts/digits")
    assert untrue.returncode == 6
    assert "trainchart.lock.yaml: differs from what the model spec gives" in untrue.stderr
    assert "the spec is not the one it was generated from" in untrue.stderr
    lock.write_text(generated)
    release(project)
    missing = run(project, "verify", "repository/digits-0.1.0.tgz", "--keyring", "keyring")
    assert missing.returncode != 0
    assert "there is no keyring at keyring" in missing.stderr
    (project / "keyring").write_bytes(b"")
    unsigned = run(project, "verify", "repository/digits-0.1.0.tgz", "--keyring", "keyring")
    assert unsigned.returncode == 6
    assert "digits-0.1.0.tgz.prov: it is missing" in unsigned.stderr
    values = project / "charts" / "digits" / "values.yaml"
    values.write_text(values.read_text() + "# mine\n")
    drifted = run(project, "verify", "charts/digits")
    assert drifted.returncode == 6
    assert "values.yaml: changed since it was generated" in drifted.stderr
    assert "values.yaml: differs from what the model spec gives" in drifted.stderr
    assert "trainchart generate digits --overwrite" in " ".join(drifted.stderr.split())
    edit(project, "description: ", "description: Now ")
    other = run(project, "verify", "repository/digits-0.1.0.tgz")
    assert other.returncode == 6
    assert "the spec is not the one it was generated from" in other.stderr
    (project / "models" / "digits.yaml").unlink()
    missing = run(project, "verify", "repository/digits-0.1.0.tgz")
    assert missing.returncode == 7
    assert "name the model spec with --spec" in missing.stderr


@pytest.fixture
def gnupg() -> Iterator[dict[str, str]]:
    """A home of gpg with a key without passphrase; its path is short, since gpg's agent listens there."""
    gpg = find_server("gpg")
    with tempfile.TemporaryDirectory(prefix="gpg-") as folder:
        environment = {**os.environ, "GNUPGHOME": folder}
        make_key = [gpg, "--batch", "--passphrase", "", "--quick-generate-key", "Ada <ada@example.com>"]
        try:
            subprocess.run([*make_key, "rsa2048", "sign", "never"], env=environment, check=True, capture_output=True)
            exported = subprocess.run([gpg, "--export"], env=environment, check=True, capture_output=True)
            Path(folder, "exported.gpg").write_bytes(exported.stdout)
            yield {"GNUPGHOME": folder}
        finally:
            subprocess.run(["gpgconf", "--kill", "all"], env=environment, check=True)


@pytest.mark.helm
@pytest.mark.parametrize("major", [3, 4])
def test_helm_accepts_the_signature(
    project: Path, gnupg: dict[str, str], major: int, request: pytest.FixtureRequest
) -> None:
    helm = request.getfixturevalue(f"helm{major}")
    keyring = Path(gnupg["GNUPGHOME"], "exported.gpg")
    release(project, "--sign", "ada@example.com", **gnupg)
    archive = project / "repository" / "digits-0.1.0.tgz"
    done = subprocess.run([helm, "verify", "--keyring", keyring, archive], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for options in ([], ["--keyring", keyring]):
        verified = run(project, "verify", archive, *options, "--format", "json", **gnupg)
        assert verified.returncode == 0, verified.stderr
        assert json.loads(verified.stdout)["isSigned"] is True
    _pull_from_a_registry_with_a_password(helm, keyring, archive, project)
    signature = archive.with_name(f"{archive.name}.prov")
    text = signature.read_text()
    signature.write_text(text.replace("version: 0.1.0", "version: 0.1.1"))
    spoiled = run(project, "verify", archive, **gnupg)
    assert spoiled.returncode == 6
    assert "the signature is not valid" in spoiled.stderr
    signature.write_text(text)
    packed = bytearray(archive.read_bytes())
    packed[4] ^= 1  # the time in the header of gzip, which changes no file of the chart
    archive.write_bytes(packed)
    other = run(project, "verify", archive, **gnupg)
    assert other.returncode == 6
    assert "but the archive is sha256:" in other.stderr


def _pull_from_a_registry_with_a_password(helm: Path, keyring: Path, archive: Path, project: Path) -> None:
    """The login that helm keeps is ours too, and helm pulls what it can verify."""
    kept = {"HELM_REGISTRY_CONFIG": str(project.parent / "logins.json")}
    with serve_registry(project.parent / "registry", with_password=True) as host:
        login = [helm, "registry", "login", host, "--username", USER, "--password-stdin", "--plain-http"]
        subprocess.run(login, input=PASSWORD, text=True, check=True, capture_output=True, env={**os.environ, **kept})
        to = f"oci://{host}/charts"
        done = run(project, "publish", archive, "--to", to, "--plain-http", "--skip-image-check", **kept)
        assert done.returncode == 0, done.stderr
        pull = [helm, "pull", f"{to}/digits", "--plain-http", "--verify", "--keyring", keyring, "-d", project.parent]
        pulled = subprocess.run(pull, capture_output=True, text=True, env={**os.environ, **kept})
        assert pulled.returncode == 0, pulled.stderr
        assert (project.parent / archive.name).read_bytes() == archive.read_bytes()


def test_a_key_that_is_not_there(project: Path, gnupg: dict[str, str]) -> None:
    refused = run(
        project,
        "release",
        "digits",
        "--to",
        "repository",
        "--skip-image-check",
        "--sign",
        "nobody@example.com",
        **gnupg,
    )
    assert refused.returncode == 7
    assert "gpg cannot sign with the key 'nobody@example.com'" in refused.stderr
    assert not (project / "repository").exists()


def test_only_what_was_signed_is_signed_again(project: Path, gnupg: dict[str, str]) -> None:
    """Who may write to a repository must not get a signature for a chart of theirs."""
    release(project)
    signing = ("deprecate", "digits", "--to", "repository", "--reason", "old", "--sign", "ada@example.com")
    refused = run(project, *signing, **gnupg)
    assert refused.returncode == 8
    assert "digits-0.1.0.tgz of the repository may not be yours" in refused.stderr
    edit(project, "description: ", "description: Now ")
    release(project, "--sign", "ada@example.com", **gnupg)
    archive = project / "repository" / "digits-0.1.1.tgz"
    content = archive.read_bytes()
    archive.write_bytes((project / "repository" / "digits-0.1.0.tgz").read_bytes())
    assert run(project, *signing, **gnupg).returncode == 8
    archive.write_bytes(content)
    done = run(project, *signing, **gnupg)
    assert done.returncode == 0, done.stderr
    assert (project / "repository" / "digits-0.1.2.tgz.prov").is_file()


def test_waivers_of_the_authors_are_no_drift_and_go_along(project: Path) -> None:
    edit(project, "kind: Model\n", "kind: Model\nenv: {HF_TOKEN: hf_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh}\n")
    assert run(project, "generate", "digits").returncode == 0
    chart = project / "charts" / "digits"
    refused = run(project, "package", chart, "-d", "dist")
    assert refused.returncode == 6 and ".trainchart-check.yaml of the chart's folder" in refused.stderr
    (chart / ".trainchart-check.yaml").write_text("waivers:\n- {rule: secrets-absent, reason: a token of nobody}\n")
    assert run(project, "package", chart, "-d", "dist").returncode == 0
    for where in (chart, "dist/digits-0.1.0.tgz"):
        verified = run(project, "verify", where)
        assert verified.returncode == 0, verified.stderr
    assert "nothing" in run(project, "diff", "digits", "--against", chart).stdout
    assert release(project)["isNew"]
    assert ".trainchart-check.yaml" in published(project, "0.1.0")
    secret = project.parent / "secret"
    secret.write_bytes((chart / ".trainchart-check.yaml").read_bytes())
    (chart / ".trainchart-check.yaml").unlink()
    (chart / ".trainchart-check.yaml").symlink_to(secret)
    refused = run(project, "release", "digits", "--to", "other", "--skip-image-check")
    assert refused.returncode == 7
    assert "charts/digits/.trainchart-check.yaml is a link to" in refused.stderr
