"""What lists of packages say about an image, and whether ours say all that pip needs to refuse anything else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trainchart.errors import PlanError, Problem
from trainchart.images.choices import Flavour
from trainchart.images.plan import TENSORFLOW_REQUIREMENTS
from trainchart.images.requirements import (
    Requirement,
    decode_requirements,
    parse_requirements,
    require_no_files,
    require_no_logins,
    require_no_replacements,
    require_no_tensorflow,
    require_tensorflow,
    require_versions,
)
from trainchart.kubernetes_yaml import parse_mapping
from trainchart.resources import read_builtin_defaults

ROOT = Path(__file__).parents[3]
LISTS = sorted(path.with_suffix(".txt") for path in (ROOT / "training-images").rglob("*.in"))
HASHED = """\
# made by hand
--only-binary :all:
TensorFlow_CPU==2.21.0 ; python_version < "3.14" \\
    --hash=sha256:1 \\
    --hash=sha256:2
    # via nobody
numpy==2.4.6 --hash=sha256:3  # the last one
"""


def test_names_versions_and_hashes_are_read() -> None:
    assert parse_requirements(HASHED) == (
        Requirement("tensorflow-cpu", "2.21.0", True, 3),
        Requirement("numpy", "2.4.6", True, 7),
    )
    assert parse_requirements("tensorflow[and-cuda] == 2.21.0\nmlxtend>=0.25\n\n./wheels/own.whl\n") == (
        Requirement("tensorflow", "2.21.0", False, 1),
        Requirement("mlxtend", "", False, 2),
    )


@pytest.mark.parametrize(
    "line",
    [
        *("tensorflow==2.21.0", "tensorflow_cpu", "TensorFlow[and-cuda]>=2", "tf-nightly"),
        "https://x.example.com/w/tensorflow-2.21.0-cp313-cp313-manylinux_2_27_x86_64.whl#sha256=1",
        "own @ https://x.example.com/tensorflow_cpu-2.21.0-1-cp313-cp313-manylinux_2_27_x86_64.whl",
    ],
)
def test_a_model_brings_no_tensorflow(line: str) -> None:
    require_no_tensorflow("tensorflow-datasets==4.9.9\nmlxtend==0.25.0\nhttps://x.example.com/tensorflow/own.whl\n")
    require_no_tensorflow(
        "/w/tensorflow_text-2.21.0-cp313-cp313-manylinux_2_28_x86_64.whl\nown==1 # see \\\ntensorflow\n"
    )
    with pytest.raises(PlanError) as refusal:
        require_no_tensorflow(f"mlxtend==0.25.0\n{line}\n")
    assert [problem.where for problem in refusal.value.problems] == ["requirements.txt:2"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("--index-url https://me:s3cret@pypi.example.com/simple", "an address contains a password or a token"),
        ("--extra-index-url=https://s3cret@pypi.example.com/simple", "an address contains a password or a token"),
        ("# -i HTTP://me:s3cret@pypi.example.com/simple", "an address contains a password or a token"),
        ("own @ https://s3cret@example.com/own-1.0.zip", "an address contains a password or a token"),
        ("git+ssh://git:s3cret@example.com/own.git", "an address contains a password or a token"),
        (
            "own @ https://${USER}:${TOKEN}@example.com/own-1.0.zip",
            "an address needs ${USER} and ${TOKEN}, but the build has no such variable",
        ),
    ],
)
def test_no_login_goes_into_the_image_with_an_address(line: str, why: str) -> None:
    with pytest.raises(PlanError) as refusal:
        require_no_logins(f"mlxtend==0.25.0\n{line}\n", "list.txt")
    assert refusal.value.problems == (Problem(why, "list.txt:2"),)
    assert "s3cret" not in f"{refusal.value}{refusal.value.hint}"
    assert "--pip-config" in refusal.value.hint


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://pypi.example.com/simple",
        "own @ git+https://example.com/team/own.git@v1.0",
        "own @ https://example.com/own.zip#by=me@example.com",
        "git+ssh://git@example.com/own.git",
        "# ask me@example.com",
    ],
)
def test_an_address_without_a_secret_is_none(line: str) -> None:
    require_no_logins(f"{line}\n", "list.txt")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("scikit-learn", "scikit-learn"),
        ("  scikit-learn >= 1.0 ; python_version > '3'  # newer", "scikit-learn >= 1.0 ; python_version > '3'"),
        ("scikit-learn==1.*", "scikit-learn==1.*"),
        ("scikit-learn==1.2,<2", "scikit-learn==1.2,<2"),
        ("scikit-learn==", "scikit-learn=="),
        ("scikit-learn=1.2", "scikit-learn=1.2"),
        ("scikit-learn[all] --hash=sha256:1", "scikit-learn[all]"),
        ("sci kit==1", "sci kit==1"),
        ("kit==1 2", "kit==1 2"),
        ("kit (==1", "kit (==1"),
        ("_kit==1", "_kit==1"),
        ("kit==${VERSION}", "kit==${VERSION}"),
    ],
)
def test_a_model_s_list_says_every_version(line: str, shown: str) -> None:
    with pytest.raises(PlanError) as refusal:
        require_versions(f"mlxtend==0.25.0\n{line}\nnumpy\n")
    assert refusal.value.problems == (
        Problem(f"{shown!r} is not a package with its exact version", "requirements.txt:2"),
        Problem("'numpy' is not a package with its exact version", "requirements.txt:3"),
    )


@pytest.mark.parametrize(
    "line",
    [
        "scikit-learn==1.2.3",
        "scikit_learn[all, more] == 1.2.3rc1+cpu.1 ; python_version > '3'  # a comment",
        "scikit-learn===1!1.2.3-1",
        "scikit-learn (==1.2.3)",
        "scikit-learn==1.2.3;python_version>'3'",
        "scikit-learn==1.2.3 \\\n    --hash=sha256:1 \\\n    --hash=sha256:2",
        "scikit-learn \\\n  ==1.2.3",
        "scikit-learn==1.2.3 --config-settings=x=y",
        "own @ https://example.com/own-1.0-py3-none-any.whl",
        "own[all]@git+https://example.com/own.git@v1",
        "own @ file:///wheels/own-1.0-py3-none-any.whl",
        "https://example.com/own.zip",
        "git+ssh://git@example.com/own.git",
        "/wheels/own-1.0-py3-none-any.whl",
        "$WHEELS/own-1.0-py3-none-any.whl",
        "--extra-index-url https://pypi.example.com/simple",
        "-e git+https://example.com/own.git#egg=own",
        "# scikit-learn",
    ],
)
def test_versions_addresses_and_options_are_exact(line: str) -> None:
    require_versions(f"\n{line}\n")


OWN_WHEEL = "https://x.example.com/numpy-2.4.7-cp313-cp313-manylinux_2_27_x86_64.whl"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("Num_Py==2.0", "num-py 2.0, and the image has 1.0"),
        ("numpy==2.4.7", "numpy 2.4.7, and the image has 2.4.6 or 2.5.5"),
        ("numpy @ git+https://x.example.com/numpy", "numpy from an address, and the image has 2.4.6 or 2.5.5"),
        (f"numpy @ {OWN_WHEEL}", "numpy 2.4.7, and the image has 2.4.6 or 2.5.5"),
        (OWN_WHEEL, "numpy 2.4.7, and the image has 2.4.6 or 2.5.5"),
    ],
)
def test_a_model_replaces_no_package_of_the_image(line: str, what: str) -> None:
    image = "numpy==2.4.6 ; python_version < '3.12'\nnumpy==2.5.5 ; python_version >= '3.12'\nnum-py==1.0\n"
    same = f"numpy==2.5.5\n{OWN_WHEEL.replace('2.4.7', '2.4.6')}\nnum.py==1\nmlxtend==0.25.0\n"
    require_no_replacements(same, image)
    with pytest.raises(PlanError) as refusal:
        require_no_replacements(f"{same}{line}\n", image)
    assert refusal.value.problems == (Problem(f"brings {what}", "requirements.txt:5"),)


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("-r other.txt", "other.txt"),
        ("-rother.txt", "other.txt"),
        ("--requirement=lists/other.txt  # more", "lists/other.txt"),
        ("-c constraints.txt", "constraints.txt"),
        ("--constraint constraints.txt", "constraints.txt"),
        ("-e .", "."),
        ("--find-links wheels", "wheels"),
        ("./x.whl", "./x.whl"),
        ("  ../lib ; python_version < '3.13'", "../lib"),
        ("wheels/x-1.0-py3-none-any.whl --hash=sha256:1", "wheels/x-1.0-py3-none-any.whl"),
        ("x-1.0.tar.gz", "x-1.0.tar.gz"),
        ("x-1.0-py3-none-any.whl[extra]", "x-1.0-py3-none-any.whl[extra]"),
        ("own/package", "own/package"),
        ("own @ file:wheels/own.whl", "wheels/own.whl"),
        ("own @ file:./own.whl ; python_version > '3'", "./own.whl"),
    ],
)
def test_a_list_leads_to_no_file_that_the_build_lacks(line: str, path: str) -> None:
    with pytest.raises(PlanError) as refusal:
        require_no_files(f"# own\nmlxtend==0.25.0\n{line}\n", "requirements.txt")
    assert refusal.value.problems == (Problem(f"names {path}", "requirements.txt:3"),)


@pytest.mark.parametrize(
    "line",
    [
        "mlxtend==0.25.0",
        "zope.interface[test]>=7,<8 ; python_version >= '3.11'",
        "--extra-index-url https://pypi.example.com/simple",
        "--only-binary :all:",
        "--require-hashes",
        "--no-index",
        "-i https://pypi.example.com/simple",
        "-r https://example.com/lists/other.txt",
        "-e git+https://example.com/own.git#egg=own",
        "own @ https://example.com/own-1.0-py3-none-any.whl",
        "own@https://example.com/own-1.0.zip",
        "own @ file:///wheels/own-1.0-py3-none-any.whl",
        "git+ssh://git@example.com/own.git",
        "/wheels/own-1.0-py3-none-any.whl",
        "--find-links=/wheels",
        "-f file:///wheels",
        "# ./own.whl",
    ],
)
def test_packages_addresses_and_base_image_files_are_accepted(line: str) -> None:
    require_no_files(f"{line}\n", "requirements.txt")


def test_a_list_is_text_as_pip_reads_it_everywhere() -> None:
    assert decode_requirements("\ufeffmlxtend==0.25.0\n".encode(), "list.txt") == "mlxtend==0.25.0\n"
    for encoding in ("utf-16", "latin-1"):
        with pytest.raises(PlanError, match=r"list\.txt is not UTF-8"):
            decode_requirements("mlxtend==0.25.0  # é\n".encode(encoding), "list.txt")


@pytest.mark.parametrize(
    "line", ["numpy==2.4.6", "numpy --hash=sha256:1", "numpy>=2 --hash=sha256:1", "numpy==2.* --hash=sha256:1"]
)
def test_a_list_for_tensorflow_is_exact(line: str) -> None:
    require_tensorflow(HASHED, "2.21.0", "list.txt")
    with pytest.raises(PlanError) as refusal:
        require_tensorflow(f"{HASHED}{line}\n", "2.21.0", "list.txt")
    assert [problem.where for problem in refusal.value.problems] == ["list.txt:8"]
    with pytest.raises(PlanError, match=r"requires TensorFlow 2\.21\.0; list\.txt has none"):
        require_tensorflow("numpy==2.4.6 --hash=sha256:3\n", "2.21.0", "list.txt")


def test_every_flavour_has_a_list() -> None:
    assert {ROOT / path for path in TENSORFLOW_REQUIREMENTS.values()} <= set(LISTS)


@pytest.mark.parametrize("flavour", Flavour)
def test_our_lists_hold_the_tensorflow_that_specs_mean(flavour: Flavour) -> None:
    path = ROOT / TENSORFLOW_REQUIREMENTS[flavour]
    default = parse_mapping(read_builtin_defaults()[1])["framework"]["tensorflow"]
    require_tensorflow(path.read_text(), default, path.name)


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.relative_to(ROOT / "training-images").as_posix())
def test_our_lists_are_what_was_declared_with_hashes_alone(path: Path) -> None:
    listed = parse_requirements(path.read_text())
    assert [requirement for requirement in listed if not (requirement.version and requirement.is_hashed)] == []
    assert len(re.findall(r"^[^#\s-]", path.read_text(), re.MULTILINE)) == len(listed), "nothing but packages by name"
    declared = {(each.name, each.version) for each in parse_requirements(path.with_suffix(".in").read_text())}
    assert declared
    assert "" not in {version for _, version in declared}
    assert declared <= {(each.name, each.version) for each in listed}, "make lock"
