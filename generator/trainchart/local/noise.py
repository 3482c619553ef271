"""Tells TensorFlow's own log lines, which are rarely what a user looks for, from the lines of a program. Pure.

Displays leave them out on request; the logs of a run always hold every line.
"""

from __future__ import annotations

import re

_HEAD = re.compile(
    r"^(?:\d{4}-\d\d-\d\d [\d:.]+: (?P<old>[IWEF]) \S+|(?P<new>[IWEF])\d{4} [\d:.]+\s+\d+ \S+)"
    r"\.(?:cc|cu|cuh|h):\d+\] (?P<text>.*)"
)
"""A line of C++ code: `2024-03-01 10:00:00.1: I tensorflow/core/x.cc:1] …`, or `I0000 00:00:1795.8 4575 x.cc:1] …`."""
_PYTHON = re.compile(
    r"^I\d{4} [\d:.]+\s+\d+ (?:functional_saver|cross_device_ops|cross_device_utils|device_compatibility_check"
    r"|(?:collective_all_reduce|mirrored|parameter_server|one_device)_strategy(?:_v2)?|multi_worker_util"
    r"|cluster_coordinator|server_lib|session_manager|monitored_session|basic_session_run_hooks|builder_impl"
    r"|signature_serialization|checkpoint_management|def_function|fingerprinting_utils)\.py:\d+\] "
)
"""A line of level INFO of TensorFlow's Python code, in the form of absl, which programs log in as well."""
_ASKED_FOR = re.compile(r"\b(?:placer|execute)\.cc:")
"""Where an operation runs: TensorFlow reports it only to those who ask for it."""
_WARNINGS = re.compile(
    r"Unable to register cu\w+ factory|computation placer already registered|Could not find (?:TensorRT|cuda drivers)"
    r"|TF-TRT Warning|Could not load dynamic library|Cannot dlopen some GPU libraries|failed call to cuInit"
    r"|CUDA_ERROR_NO_DEVICE|successful NUMA node read|NUMA node read from SysFS"
    r"|Local rendezvous|OUT_OF_RANGE: End of sequence"
    r"|UNAVAILABLE|failed to connect to all addresses|Connection re(?:set by peer|fused)|Socket closed|recvmsg:"
)
"""Warnings and errors that say nothing about the program: GPUs that are not there, peers that are not there yet."""
_PLAIN = re.compile(
    r"^(?:WARNING: All log messages before absl::InitializeLog\(\) is called are written to STDERR"
    r"|To enable the following instructions: .* rebuild TensorFlow with the appropriate compiler flags\."
    r"|Skipping registering GPU devices\.\.\.)"
)
_MORE = re.compile(
    r"^(?:\s*\w+ \{|\s*\w+: (?:-?[\d.]+|true|false|[A-Z_]+|\".*\")|\s*\}|"
    r"Additional GRPC error information .*|:(?:UNKNOWN:|\{).*|\s*\[\[\{\{node .*|"
    r"This could happen if the remote target has been disconnected from the client\.|)$"
)
"""What may follow such a line: the fields of a message that it prints, and what gRPC adds to an error."""


class NoiseFilter:
    """Recognizes TensorFlow's own lines in the output of one pod, whose lines it sees in their order."""

    def __init__(self) -> None:
        self._was_noise = False

    def is_noise(self, line: str) -> bool:
        head = _HEAD.match(line)
        if _PYTHON.match(line):
            self._was_noise = True
        elif head is None:
            self._was_noise = bool(_PLAIN.match(line)) or (self._was_noise and bool(_MORE.match(line)))
        elif (head["old"] or head["new"]) == "I":
            self._was_noise = not _ASKED_FOR.search(line)
        else:
            self._was_noise = "F" not in (head["old"], head["new"]) and bool(_WARNINGS.search(head["text"]))
        return self._was_noise
