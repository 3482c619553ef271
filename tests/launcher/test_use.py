"""What a container uses, in /status: from cgroup files, mounted over the real ones, and from a library like NVML."""

from __future__ import annotations

import os
import sys
import threading
import time
import types

import pytest

from trainchart_launcher import cgroup, use
from trainchart_launcher.use import UseWatch

WAIT_FOR_FILE = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\n"
MOUNT = 'mount --bind "$0/cgroup" /sys/fs/cgroup && mount --bind "$0/self" /proc/$$/cgroup && exec "$@"'
MEBIBYTE = 1 << 20


def write_v2(folder, seconds, memory="5242880", stat="file 7\ninactive_file 1048576\nactive_file 3\n"):
    (folder / "cgroup").mkdir(exist_ok=True)
    (folder / "self").write_text("0::/\n")
    (folder / "cgroup" / "cpu.stat").write_text(f"usage_usec {int(seconds * 1e6)}\nuser_usec 1\n")
    (folder / "cgroup" / "memory.current").write_text(f"{memory}\n")
    (folder / "cgroup" / "memory.stat").write_text(stat)


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="a mount namespace needs root on Linux")
def test_status_says_what_the_container_uses(make_pod, tmp_path):
    write_v2(tmp_path, 100)
    pod = make_pod(prefix=("unshare", "--mount", "sh", "-c", MOUNT, str(tmp_path)))
    pod.start(WAIT_FOR_FILE)
    assert "use" not in pod.wait_for_status(lambda status: status["state"] == "running"), "no one has asked"
    first = pod.status("?use")["use"]
    assert first == {"memoryBytes": 4 * MEBIBYTE}, "CPU is a difference of two looks"
    began = time.monotonic()
    write_v2(tmp_path, 103)
    cpu = pod.wait_for_status(lambda status: "cpu" in status["use"], "?use")["use"]["cpu"]
    assert 3 / (time.monotonic() - began + 1) < cpu <= 3 / 0.5


def test_cgroups_version_1_are_read_too(files):
    files["/proc/self/cgroup"] = "4:memory:/pod1\n3:cpu,cpuacct:/pod1\n0::/\n"
    files["/sys/fs/cgroup/memory/memory.usage_in_bytes"] = "5242880\n"
    files["/sys/fs/cgroup/memory/memory.stat"] = "inactive_file 1\ntotal_inactive_file 1048576\n"
    files["/sys/fs/cgroup/cpuacct/cpuacct.usage"] = "1500000000\n"
    assert (cgroup.read_memory_bytes(), cgroup.read_cpu_seconds()) == (4 * MEBIBYTE, 1.5)


@pytest.mark.parametrize("damage", ["", "max\n", "-1\n", "9" * 5000, "٣\n", "usage_usec\n", "usage_usec 1 2\n"])
def test_unreadable_cgroup_files_are_left_out(files, damage):
    for name in ("memory.current", "memory.stat", "cpu.stat"):
        files[f"/sys/fs/cgroup/{name}"] = damage
    assert UseWatch().read() == {}


def test_memory_without_file_pages_is_never_negative(files):
    files["/sys/fs/cgroup/memory.current"] = "5\n"
    files["/sys/fs/cgroup/memory.stat"] = "inactive_file 7\n"
    assert cgroup.read_memory_bytes() == 0


def test_cpu_is_of_the_last_seconds(monkeypatch, files):
    now, used = [1000.0], [0.0]
    monkeypatch.setattr(use, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(use, "read_cpu_seconds", lambda: used[0])
    watch = UseWatch()
    seen = []
    for seconds, cores in ((0, 0), (0.1, 4), (0.9, 4), (5, 2), (100, 1), (1, 1)):
        now[0] += seconds
        used[0] += seconds * cores
        seen.append(watch.read().get("cpu"))
    assert seen == [None, None, 4.0, 2.0, None, 1.0]
    used[0] = 0
    now[0] += 1
    assert "cpu" not in watch.read(), "the container has another cgroup"


class NvmlError(Exception):
    pass


def make_nvml(**changes):
    """A library with two GPUs; the second is a slice, which has no utilization."""

    def utilization(device):
        if device == 1:
            raise NvmlError("Not Supported")
        return types.SimpleNamespace(gpu=37)

    memory = types.SimpleNamespace(used=3 * MEBIBYTE, total=16 * MEBIBYTE)
    functions = {
        "NVMLError": NvmlError,
        "nvmlInit": lambda: None,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetMemoryInfo": lambda device: memory,
        "nvmlDeviceGetUtilizationRates": utilization,
        **changes,
    }
    return types.SimpleNamespace(**functions)


@pytest.fixture
def gpu(monkeypatch, tmp_path, files):
    """Offers a device file, and a library; None is an image without one."""
    (tmp_path / "nvidia0").touch()
    monkeypatch.setattr(use, "_DEVICES", str(tmp_path / "nvidia[0-9]*"))
    monkeypatch.setattr(use, "_GPU_PAUSE_SECONDS", 0.0)
    return lambda library: monkeypatch.setitem(sys.modules, "pynvml", library)


def read_twice(watch):
    watch.read()
    watch._gpus._thread.join(timeout=30)
    return watch.read()


def test_gpus_are_read_beside_the_answer(gpu):
    gpu(make_nvml())
    sizes = {"memoryBytes": 3 * MEBIBYTE, "memoryTotalBytes": 16 * MEBIBYTE}
    assert read_twice(UseWatch()) == {"gpus": [{**sizes, "utilization": 37}, sizes]}


def fail():
    raise NvmlError("Driver Not Loaded")


@pytest.mark.parametrize("library", [None, make_nvml(nvmlInit=fail), make_nvml(nvmlDeviceGetCount=fail)])
def test_without_library_or_driver_gpus_are_left_out(gpu, library):
    gpu(library)
    assert read_twice(UseWatch()) == {}


def test_a_driver_that_hangs_delays_no_answer(gpu):
    is_over = threading.Event()
    gpu(make_nvml(nvmlInit=lambda: is_over.wait(30)))
    watch = UseWatch()
    began, threads = time.monotonic(), threading.active_count()
    assert [watch.read() for _ in range(20)] == [{}] * 20
    assert time.monotonic() - began < 10 and threading.active_count() == threads + 1
    is_over.set()


def test_without_devices_no_library_is_loaded(monkeypatch, tmp_path, files, gpu):
    monkeypatch.setattr(use, "_DEVICES", str(tmp_path / "none*"))
    monkeypatch.setattr(use, "_load_nvml", fail)
    watch = UseWatch()
    assert watch.read() == watch.read() == {} and watch._gpus._thread is None
