"""What the training image's Dockerfile does with Python files, by its own commands, on this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from trainchart.images.plan import TRAINING_DOCKERFILE
from trainchart.resources import read_image_source


def compile_code(root: Path) -> subprocess.CompletedProcess[str]:
    """Run the commands that compile the model's code and the training library, with `root` as the image."""
    instructions = read_image_source(TRAINING_DOCKERFILE).decode().replace("\\\n", "").splitlines()
    (run,) = (line for line in instructions if line.startswith("RUN") and " /app" in line)
    command, written, _ = run.removeprefix("RUN").partition("&& printf")
    assert written, "what would be written into this Python's own folder is to be left out"
    for folder in ("/app", "/opt/trainchart"):
        command = command.replace(f" {folder}", f" {root}{folder}")
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    for name in ("app/train.py", "opt/trainchart/python/library.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("print(1)\n")
    return tmp_path


def test_code_that_does_not_compile_is_named_and_ends_no_build(image: Path) -> None:
    (image / "app" / "a_template.py").write_text("{{ name }} = $1\n")
    done = compile_code(image)
    assert done.returncode == 0, done.stderr
    assert "a_template.py" in done.stdout
    compiled = [path.name.partition(".")[0] for path in sorted(image.rglob("*.pyc"))]
    assert compiled == ["train", "library"]


def test_a_library_that_does_not_compile_ends_the_build(image: Path) -> None:
    (image / "opt" / "trainchart" / "python" / "broken.py").write_text("def\n")
    assert compile_code(image).returncode != 0
