"""What a program prints whose loader process has died with the shared memory that it had filled."""

from __future__ import annotations

import subprocess
import sys

from trainchart_runtime.causes import SHARED_MEMORY_LOST
from trainchart_runtime.classify import Ending, classify

PROGRAM = """
import multiprocessing, os, signal, time
from multiprocessing.shared_memory import SharedMemory

def load(batches):
    block = SharedMemory(create=True, size=64)
    batches.send(block.name)
    os.kill(os.getpid(), signal.SIGBUS)  # as a full /dev/shm does

if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    batches, sender = multiprocessing.Pipe()
    loader = multiprocessing.Process(target=load, args=(sender,))
    loader.start()
    name = batches.recv()
    loader.join()
    deadline = time.monotonic() + 30
    while os.path.exists(f"/dev/shm/{name}") and time.monotonic() < deadline:
        time.sleep(0.01)
    SharedMemory(name)
"""


def test_block_of_a_dead_process_is_no_missing_file() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    found = classify(Ending(done.returncode, lines=done.stderr.splitlines()))
    assert found.cause is SHARED_MEMORY_LOST
    assert found.error.startswith("FileNotFoundError: [Errno 2] No such file or directory: '/psm_")
