"""Which lines are TensorFlow's own. The lines are those that TensorFlow 2.21 and 2.15 print."""

from __future__ import annotations

import pytest

from trainchart.local.noise import NoiseFilter

START = """\
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
I0000 00:00:1795582067.004057    8272 cpu_feature_guard.cc:227] This TensorFlow binary is optimized to use available CPU
To enable the following instructions: FMA, in other operations, rebuild TensorFlow with the appropriate compiler flags.
I0000 00:00:1795491096.429803    2663 port.cc:153] oneDNN custom operations are on. You may see different results.
2024-03-01 10:00:00.1: E external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:1] Unable to register cuDNN factory
2024-03-01 10:00:00.1: W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:38] TF-TRT Warning: Could not find TensorRT
E0000 00:00:1795582067.004057    8272 cuda_platform.cc:51] failed call to cuInit: INTERNAL: CUDA error: no device
Skipping registering GPU devices...
I0000 00:00:1795582082.056975    8585 eager_service_impl.cc:355] SessionOptions: goo.gle/debugproto
device_count {
  key: "CPU"
  value: 1
}
gpu_options {
  experimental {
  }
}
allow_soft_placement: true
experimental {
  collective_group_leader: "/job:ps/replica:0/task:0"
}

E0000 00:00:1795582084.731514    8272 context.cc:873] Failed due to recvmsg:Connection
Additional GRPC error information from remote target /job:ps/replica:0/task:0 while calling /tensorflow.eager.X/Enqueue:
:UNKNOWN:Error received from peer  {grpc_status:14, grpc_message:"recvmsg:Connection reset by peer"}
This could happen if the remote target has been disconnected from the client."""


@pytest.mark.parametrize(
    ("line", "is_noise"),
    [
        ("I1125 16:09:52.123456 140234 functional_saver.py:440] Sharding callback duration: 25 microseconds", True),
        ("I1125 16:09:52.123456 140234 cross_device_ops.py:616] Reduce to /job:worker/replica:0/task:0", True),
        ("W1125 16:09:52.123456 140234 functional_saver.py:440] what is worth a warning", False),
        ("I1125 16:09:52.123456 140234 checkpoint.py:44] a program's own file may be called so", False),
    ],
)
def test_lines_of_tensorflows_python_code_are_told_by_their_file(line: str, is_noise: bool) -> None:
    assert NoiseFilter().is_noise(line) is is_noise


@pytest.mark.parametrize("line", START.splitlines())
def test_tensorflow_lines_are_noise_in_their_order(line: str) -> None:
    lines = START.splitlines()
    noise = NoiseFilter()
    found = [noise.is_noise(line) for line in lines]
    assert found[lines.index(line)]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "}",
        "step 50/300  loss 0.4373",
        "loss: 0.25",
        "W0000 00:00:1795582084.7 8272 op_kernel.cc:1] OP_REQUIRES failed: RESOURCE_EXHAUSTED: OOM when allocating",
        "F0000 00:00:1795582084.7 8272 context.cc:873] Check failed: UNAVAILABLE",
        "2024-03-01 10:00:00.1: F tensorflow/core/x.cc:12] failed to connect to all addresses",
        "I1125 04:45:06.123456 140234 train.py:45] step 50",
        "I0000 00:00:1795582084.7 8272 placer.cc:125] Add: (Add): /job:localhost/replica:0/task:0/device:CPU:0",
        "tensorflow.python.framework.errors_impl.UnavailableError: Connection refused",
    ],
)
def test_program_lines_and_its_errors_are_shown(line: str) -> None:
    assert not NoiseFilter().is_noise(line)


def test_seeming_continuation_ends_with_the_first_other_line() -> None:
    noise = NoiseFilter()
    lines = ["I0000 00:00:1795.8 4575 x.cc:1] SessionOptions:", "  key: 1", "begin", "  key: 1"]
    assert [noise.is_noise(line) for line in lines] == [True, True, False, False]
