"""What the container uses: CPU and memory by its cgroup, GPUs by NVML. Read when someone asks, and never before.

The status page has one thread, which must not wait: GPUs are read beside it, and an answer has the last reading. NVML
comes from nvidia-ml-py, where the image has it; of a container without GPUs nothing is loaded.
"""

from __future__ import annotations

import glob
import threading
import time
from typing import Any, Dict, List, Optional, Tuple

from trainchart_launcher.cgroup import read_cpu_seconds, read_memory_bytes

_DEVICES = "/dev/nvidia[0-9]*"
_LEAST_SECONDS = 0.5
"""CPU time over less says little."""
_MOST_SECONDS = 60.0
_SAMPLES = 8
_GPUS_LIMIT = 64
_GPU_AGE_SECONDS = 30.0
"""An older reading is left out: the driver may not answer any more."""
_GPU_PAUSE_SECONDS = 0.5


class UseWatch:
    """Remembers the last samples, since CPU use is a difference of two."""

    def __init__(self) -> None:
        self._samples: List[Tuple[float, float]] = []
        """(monotonic time, CPU seconds), oldest first."""
        self._gpus = _GpuReader()

    def read(self) -> Dict[str, Any]:
        """Return what the container uses; what is not known is left out."""
        found: Dict[str, Any] = {}
        cpu, memory, gpus = self._measure_cpu(), read_memory_bytes(), self._gpus.read()
        if cpu is not None:
            found["cpu"] = round(cpu, 3)
        if memory is not None:
            found["memoryBytes"] = memory
        if gpus:
            found["gpus"] = gpus
        return found

    def _measure_cpu(self) -> Optional[float]:
        """Return the cores in use since the newest sample that is old enough; None at the first look."""
        now, used = time.monotonic(), read_cpu_seconds()
        if used is None:
            return None
        known = [each for each in self._samples if now - each[0] <= _MOST_SECONDS and each[1] <= used]
        before = next((each for each in reversed(known) if now - each[0] >= _LEAST_SECONDS), None)
        if not known or now - known[-1][0] >= _LEAST_SECONDS / 2:
            known.append((now, used))
        self._samples = known[-_SAMPLES:]
        return None if before is None else (used - before[1]) / (now - before[0])


class _GpuReader:
    """Reads the container's GPUs in a thread of its own, one reading at a time."""

    def __init__(self) -> None:
        self._nvml: Any = None
        self._is_absent = False
        self._thread: Optional[threading.Thread] = None
        self._last: List[Dict[str, Any]] = []
        self._read_at = 0.0
        self._asked_at = 0.0

    def read(self) -> List[Dict[str, Any]]:
        """Return the last reading, and start another; nothing without GPUs, library or driver."""
        now = time.monotonic()
        is_idle = self._thread is None or not self._thread.is_alive()
        if not self._is_absent and is_idle and now - self._asked_at >= _GPU_PAUSE_SECONDS:
            if not glob.glob(_DEVICES):
                self._is_absent = True
                return []
            self._asked_at = now
            self._thread = threading.Thread(target=self._renew, daemon=True, name="gpus")
            self._thread.start()
        return self._last if self._read_at and now - self._read_at <= _GPU_AGE_SECONDS else []

    def _renew(self) -> None:
        try:
            if self._nvml is None:
                self._nvml = _load_nvml()
            self._last = _read_gpus(self._nvml)
            self._read_at = time.monotonic()
        except ImportError:
            self._is_absent = True
        except Exception:
            # No driver, or one that fails: NVML has an error class for each kind. It is looked for again later.
            self._nvml = None


def _load_nvml() -> Any:
    import pynvml

    pynvml.nvmlInit()
    return pynvml


def _read_gpus(nvml: Any) -> List[Dict[str, Any]]:
    found = []
    for index in range(min(int(nvml.nvmlDeviceGetCount()), _GPUS_LIMIT)):
        device = nvml.nvmlDeviceGetHandleByIndex(index)
        memory = nvml.nvmlDeviceGetMemoryInfo(device)
        gpu = {"memoryBytes": int(memory.used), "memoryTotalBytes": int(memory.total)}
        try:
            gpu["utilization"] = int(nvml.nvmlDeviceGetUtilizationRates(device).gpu)
        except nvml.NVMLError:
            # A slice of a GPU (MIG) has none.
            pass
        found.append(gpu)
    return found
