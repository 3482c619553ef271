"""Files of a program that Python imports in place of modules, as Python itself reports them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from trainchart_runtime import causes
from trainchart_runtime.classify import Ending, classify

LOADED_TENSORFLOW = "AttributeError: module 'tensorflow' has no attribute "


def run_program(folder: Path, files: dict[str, str]) -> Ending:
    for name, text in files.items():
        (folder / name).write_text(text)
    done = subprocess.run([sys.executable, str(folder / "train.py")], capture_output=True, text=True, timeout=60)
    return Ending(exit_code=done.returncode, lines=done.stderr.splitlines())


@pytest.mark.parametrize(
    ("name", "program", "own"),
    [
        ("random.py", "import tempfile", ""),
        ("random.py", "import random", "import tempfile"),
        ("string.py", "import logging", ""),
        ("socket.py", "import asyncio", ""),
        ("socket.py", "import socket", "import asyncio"),
        ("json.py", "import importlib.metadata, logging.config, json.decoder", ""),
        ("email.py", "import importlib.metadata as all\nall.version('pip')", ""),
        ("numpy.py", "from numpy import float32", ""),
        ("tensorflow.py", "from tensorflow import data", ""),
        ("tensorflow.py", "import tensorflow as tf\ntf.keras", ""),
        ("tensorflow.py", "import tensorflow.keras", ""),
    ],
)
def test_a_file_named_like_a_module_is_found(tmp_path: Path, name: str, program: str, own: str) -> None:
    ending = run_program(tmp_path, {name: own, "train.py": program})

    assert ending.exit_code == 1
    assert classify(ending).cause is causes.MODULE_SHADOWED
    assert name.removesuffix(".py") in classify(ending).error


@pytest.mark.parametrize(
    ("files", "cause"),
    [
        # A typo in the name of a standard module's function, and modules of the program that import each other.
        ({"train.py": "import random\nrandom.choise([1])"}, causes.PROGRAM_ERROR),
        ({"train.py": "from random import choise"}, causes.PROGRAM_ERROR),
        (
            {"train.py": "import model", "model.py": "from data import x", "data.py": "from model import y"},
            causes.PROGRAM_ERROR,
        ),
        ({"train.py": "import model\nmodel.build()", "model.py": ""}, causes.PROGRAM_ERROR),
        ({"train.py": "import missing.part"}, causes.MODULE_MISSING),
    ],
)
def test_mistakes_of_the_program_are_no_shadows(tmp_path: Path, files: dict[str, str], cause: object) -> None:
    assert classify(run_program(tmp_path, files)).cause is cause


def test_the_words_of_later_pythons_are_known() -> None:
    error = (
        "AttributeError: module 'random' has no attribute 'choice' (consider renaming '/app/random.py' since it has "
        "the same name as the standard library module named 'random' and the import system gives it precedence)"
    )
    lines = ["Traceback (most recent call last):", '  File "/app/train.py", line 2, in <module>', "    x", error]

    assert classify(Ending(exit_code=1, lines=lines)).cause is causes.MODULE_SHADOWED


def test_a_removed_name_means_tensorflow_1() -> None:
    lines = ["Traceback (most recent call last):", '  File "/app/train.py", line 2, in <module>', "    x"]
    removed = Ending(exit_code=1, lines=[*lines, f"{LOADED_TENSORFLOW}'placeholder'"])

    assert classify(removed).cause is causes.TENSORFLOW_1
