"""The next version: a table, and that it always is a SemVer version that comes after."""

from __future__ import annotations

from pathlib import Path

import helm_python
import pytest

from trainchart.chart_version import is_chart_version, version_key
from trainchart.compare.version import Bump, last_version, next_version, with_pre_release
from trainchart.errors import UsageError


@pytest.mark.parametrize(
    ("last", "bump", "at_least", "pre_release", "expected"),
    [
        ("1.2.3", Bump.none, Bump.none, "", "1.2.3"),
        ("1.2.3", Bump.patch, Bump.none, "", "1.2.4"),
        ("1.2.3", Bump.minor, Bump.none, "", "1.3.0"),
        ("1.2.3", Bump.major, Bump.none, "", "2.0.0"),
        ("0.1.0", Bump.major, Bump.none, "", "1.0.0"),
        ("1.2.3", Bump.patch, Bump.minor, "", "1.3.0"),
        ("1.2.3", Bump.major, Bump.patch, "", "2.0.0"),
        ("1.2.3", Bump.none, Bump.major, "", "1.2.3"),
        ("1.2.3", Bump.minor, Bump.none, "dev.12+g1a2b3c", "1.3.0-dev.12+g1a2b3c"),
        ("1.2.3", Bump.none, Bump.none, "dev.12", "1.2.3"),
        ("1.3.0-rc.1", Bump.patch, Bump.none, "", "1.3.0"),
        ("2.0.0-rc.1", Bump.minor, Bump.none, "", "2.0.0"),
        ("1.3.0-rc.1", Bump.major, Bump.none, "", "2.0.0"),
        ("1.2.3+build.5", Bump.patch, Bump.none, "", "1.2.4"),
    ],
)
def test_the_next_version(last: str, bump: Bump, at_least: Bump, pre_release: str, expected: str) -> None:
    found = next_version(last, bump, at_least=at_least, pre_release=pre_release)
    assert found == expected
    assert is_chart_version(found)
    assert version_key(found) >= version_key(last)


@pytest.mark.parametrize(
    ("version", "is_one"),
    [(f"{2**64 - 1}.0.0", True), (f"0.{2**64}.0", False), (f"1.0.0-{'a' * 250}", True), (f"1.0.0-{'a' * 251}", False)],
)
def test_versions_are_those_of_helm(tmp_path: Path, version: str, is_one: bool) -> None:
    (tmp_path / "Chart.yaml").write_text(f"apiVersion: v2\nname: demo\nversion: {version}\n")
    assert is_chart_version(version) is is_one
    said = ""
    try:
        helm_python.package(tmp_path, destination=tmp_path)
    except helm_python.HelmError as error:
        said = str(error)  # That the file's name is too long comes after what is asked here.
    assert ("is invalid" not in said) is is_one


@pytest.mark.parametrize("pre_release", ["-", "dev..1", "01", "a b", "ä", "+", "1/2"])
def test_what_is_no_pre_release(pre_release: str) -> None:
    if pre_release == "-":
        assert next_version("1.0.0", Bump.patch, pre_release="-") == "1.0.1--"
        return
    with pytest.raises(UsageError, match="is not a valid pre-release"):
        next_version("1.0.0", Bump.patch, pre_release=pre_release)


@pytest.mark.parametrize(
    ("pre_release", "says"),
    [
        ("01", ": 01 begins with 0, so write 1"),
        ("beta.007+01", ": 007 begins with 0, so write 7"),
        ("beta..1", ": one of its parts, before, between or after dots, is empty"),
        (".1", ": one of its parts, before, between or after dots, is empty"),
        ("rc.1+", ": one of its parts, before, between or after dots, is empty"),
        ("rc_1 b", ": it holds '_', ' '"),
    ],
)
def test_wrong_part_of_a_pre_release_is_named(pre_release: str, says: str) -> None:
    with pytest.raises(UsageError) as refusal:
        with_pre_release("1.0.0", pre_release)
    assert refusal.value.message == f"{pre_release!r} is not a valid pre-release{says}"


def test_a_pre_release_is_one_whatever_the_spec_says() -> None:
    """What tells builds of 2.0.0 apart comes last: behind it, a dash begins nothing."""
    assert with_pre_release("2.0.0+build.5", "dev.12+g1a2b3c") == "2.0.0-dev.12+g1a2b3c"
    assert with_pre_release("2.0.0+build.5", "") == "2.0.0+build.5"


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ([], ""),
        (["1.9.0", "1.10.0", "1.2.0"], "1.10.0"),
        (["1.0.0", "1.1.0-rc.1"], "1.0.0"),
        (["1.1.0-rc.2", "1.1.0-rc.10"], "1.1.0-rc.10"),
        (["1.0.0", "latest", "v1.1"], "1.0.0"),
        (["1.0.0+a", "1.0.0+b"], "1.0.0+b"),
    ],
)
def test_the_last_version(versions: list[str], expected: str) -> None:
    assert last_version(versions) == expected
