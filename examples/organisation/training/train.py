"""Stands for the organisation's own programs: counts steps, and goes on where the last attempt ended."""

import os
import pathlib
import time

checkpoint = pathlib.Path(os.environ.get("TRAINCHART_CHECKPOINTS_DIR", "."), "step")
step = int(checkpoint.read_text()) if checkpoint.exists() else 0
while step < 5:
    time.sleep(0.1)
    step += 1
    checkpoint.write_text(str(step))
print(f"finished at step {step}")
