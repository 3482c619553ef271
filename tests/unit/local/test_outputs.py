"""What a local run has left is found, however a program has laid it out."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

from tests.support.deep_trees import deep_tree
from trainchart.local.io.outputs import find_outputs
from trainchart.local.io.writes import describe_writes, read_code_times
from trainchart.local.plan import WRITES_FILE, LocalPlan


def test_outputs_in_a_deep_tree_are_found(tmp_path: Path) -> None:
    claim, code = tmp_path / "runs" / "run" / "claims" / "ckpt", tmp_path / "code"
    pod = SimpleNamespace(pod_folder=str(claim), working_directory=str(code), environment={WRITES_FILE: ""})
    plan = cast(
        "LocalPlan",
        SimpleNamespace(
            outputs=(str(claim),),
            pods=(pod,),
            checkpoints=str(claim),
            tensorboard_logs="",
            claims={"ckpt": str(claim)},
            release_folder=str(tmp_path / "runs" / "run"),
        ),
    )
    code.mkdir()
    before = read_code_times(plan)
    with deep_tree(claim), deep_tree(code):
        found = find_outputs(plan, since=0)
        assert (found.checkpoints, found.is_changed, found.holds_files) == (str(claim), True, True)
        assert "the program wrote " in describe_writes(plan, before)[0]
