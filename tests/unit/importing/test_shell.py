"""Shell scripts to programs: one that sets up and starts a program becomes it, and all others stay as they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainchart.importing.commands import read_command
from trainchart.importing.ledger import Ledger, Origin
from trainchart.importing.shell import find_script, read_script


def words_of(script: str, env: dict[str, str] | None = None) -> tuple[list[str], Ledger]:
    ledger = Ledger(Origin("job.yaml"))
    container = {"command": ["sh", "-c", script]}
    return read_command(container, ("containers", 0), env or {}, "digits", ledger).words, ledger


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("python train.py --lr 0.1", ["python", "train.py", "--lr", "0.1"]),
        ("set -e; cd /app && exec python 'my train.py'", ["python", "my train.py"]),
        ("python train.py --data=$DATA", ["python", "train.py", "--data=$(DATA)"]),
        ("python train.py --data=${DATA}/x", ["python", "train.py", "--data=$(DATA)/x"]),
        ("N=3\npython train.py --steps=$N", ["python", "train.py", "--steps=$(N)"]),
        (
            "I=${HOSTNAME##*-}\npython train.py --job_name=ps --task_index=$I --ps_hosts=$(cat h)",
            ["sh", "-c", "I=${HOSTNAME##*-}\npython train.py --job_name=ps --task_index=$I --ps_hosts=$(cat h)"],
        ),
        (
            "I=$(hostname | sed 's/.*-//')\npython train.py --job_name ps --task_index $I --ps_hosts a-0.a:1,a-1.a:1",
            [
                "python",
                "train.py",
                "--job_name",
                "$(TASK_TYPE)",
                "--task_index",
                "$(TASK_INDEX)",
                "--ps_hosts",
                "$(PS_HOSTS)",
            ],
        ),
        ("python a.py && python b.py", ["sh", "-c", "python a.py && python b.py"]),
        ("python a.py | tee log", ["sh", "-c", "python a.py | tee log"]),
        ("if true; then python a.py; fi", ["sh", "-c", "if true; then python a.py; fi"]),
        ("python a.py --x=$UNKNOWN", ["sh", "-c", "python a.py --x=$UNKNOWN"]),
        ("python a.py *.txt", ["sh", "-c", "python a.py *.txt"]),
    ],
)
def test_a_script_that_starts_one_program_becomes_it(script: str, words: list[str]) -> None:
    assert words_of(script, {"DATA": "/data"})[0] == words


def test_a_kept_script_that_makes_the_cluster_is_named() -> None:
    words, ledger = words_of("export TF_CONFIG=x; for i in 1 2; do python a.py; done")
    assert words[0] == "sh"
    assert "sets TF_CONFIG itself" in str(ledger.left)
    words, ledger = words_of('export TF_CONFIG="{\\"task\\": $I}"\npython a.py')
    assert (words, ledger.left) == (["python", "a.py"], [])


def test_a_number_of_pods_in_a_flag_is_noted() -> None:
    words, ledger = words_of("python a.py --num_workers=4 --steps=9")
    assert words == ["python", "a.py", "--num_workers=4", "--steps=9"]
    assert "--num_workers keeps its value: it looks like a number of pods" in str(ledger.notes)


def test_only_a_shell_with_one_script_has_a_script() -> None:
    assert find_script(["/bin/bash", "-ec", "x"]) == "x"
    assert find_script(["/bin/bash", "-c", "--", "x"]) == "x"
    assert find_script(["bash", "train.sh", "-c"]) is None
    assert find_script(["python", "-c", "x"]) is None


@given(st.text("ab $\\\"'`;&|(){}=\n#-", max_size=60))
def test_any_script_is_read_or_kept(script: str) -> None:
    program = read_script(script)
    assert program is None or program.words


def test_long_script_stays_a_script() -> None:
    assert read_script("python train.py") is not None
    assert read_script("python train.py " + "${" * 5_000) is None
