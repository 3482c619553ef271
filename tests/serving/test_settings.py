"""The command line: TensorFlow Serving's flags, and what is wrong with a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainchart_serving.settings import parse_settings
from trainchart_serving.versions import VersionPolicy

ALWAYS = ["--model_name=m", "--model_base_path=/models/m"]
HASH = "a" * 64


def test_the_flags_of_tensorflow_serving_are_understood() -> None:
    flags = [
        "--port=1",
        "--rest_api_port",
        "2",
        "--enable_batching",
        "--max-batch-size=8",
        "--batch-timeout-micros=500",
    ]
    found = parse_settings([*ALWAYS, *flags])
    assert (found.model_base_path, found.grpc_port, found.rest_port) == (Path("/models/m"), 1, 2)
    assert (found.batches.max_examples, found.batches.timeout_seconds) == (8, 0.0005)
    assert parse_settings([*ALWAYS, "--enable_batching=false"]).batches.max_examples == 1


def test_versions_and_their_content_can_be_pinned() -> None:
    found = parse_settings([*ALWAYS, "--version=3", "--version=4", f"--content=3=sha256:{HASH}", f"--content=4={HASH}"])
    assert found.policy == VersionPolicy(1, (3, 4), {3: f"sha256:{HASH}", 4: HASH})


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--port=99999", "99999 is not a port"),
        ("--max_batch_size=0", "must be 1 or more"),
        ("--max_batch_size=-1", "'-1' is not a whole number"),
        ("--enable_batching=maybe", "'maybe' is neither true nor false"),
        ("--drain_delay_seconds=nan", "'nan' is not a number of seconds"),
        ("--content=3=abc", "'3=abc' is not of the form 3=sha256:…"),
        ("--model_config_file=x", "unrecognized arguments: --model_config_file=x"),
    ],
)
def test_a_wrong_flag_is_named(flag: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_settings([*ALWAYS, flag])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
