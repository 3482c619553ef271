"""`python -m tests.cluster.testcluster.images` builds all images ahead of time and says how long each step took."""

from __future__ import annotations

import sys
import time

from tests.cluster.testcluster.images import ImageBuildError, ImagePrograms, build_images
from tests.cluster.testcluster.programs import ProgramError, find_program


def main() -> int:
    """Build all images; print the folder of each result, and progress on standard error."""
    start = time.monotonic()
    try:
        programs = ImagePrograms(pause=find_program("pause"), coredns=find_program("coredns"))
        images = build_images(programs, lambda line: print(line, file=sys.stderr, flush=True))
    except (ImageBuildError, ProgramError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"all images: {time.monotonic() - start:.1f} s", file=sys.stderr)
    for folder in (images.layout, images.containerd_root, images.registry_storage):
        print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
