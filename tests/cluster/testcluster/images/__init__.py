"""Images of the test cluster, built from Debian, PyPI and this project alone, and cached by what goes into them.

`build_images` gives an ImageSet; each node starts from `copy_containerd_root` and each run's registry from
`copy_registry_storage`, so that bring-up imports, pulls and pushes nothing. Needs root, and Debian's buildah,
containerd, mmdebstrap, runc and skopeo.
"""

from tests.cluster.testcluster.images.build import ImagePrograms, ImageSet, build_images
from tests.cluster.testcluster.images.containerd_root import copy_containerd_root
from tests.cluster.testcluster.images.registry_storage import copy_registry_storage
from tests.cluster.testcluster.images.tool import ImageBuildError

__all__ = [
    "ImageBuildError",
    "ImagePrograms",
    "ImageSet",
    "build_images",
    "copy_containerd_root",
    "copy_registry_storage",
]
