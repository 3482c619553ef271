"""What known provisioners of volumes can do, as data: for `check` and `doctor`.

Sources: the access modes that each driver's own documentation states, and for the in-tree plug-ins the removals in the
release notes of Kubernetes 1.26 (GlusterFS) and 1.31 (CephFS, Ceph RBD).
"""

from __future__ import annotations

from dataclasses import dataclass

ONE_NODE = frozenset({"ReadWriteOnce", "ReadWriteOncePod"})
SHARED = frozenset({*ONE_NODE, "ReadWriteMany", "ReadOnlyMany"})
NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""Of classes whose volumes an administrator makes."""


@dataclass(frozen=True)
class Provisioner:
    """A driver that makes volumes, and what they can do as file systems."""

    name: str
    """What people call it."""
    access_modes: frozenset[str]
    instead: str = ""
    """What to use for an access mode that it lacks."""
    removed_in: str = ""
    """Version of Kubernetes that no longer has it."""
    caution: str = ""
    """What checkpoints on it must know."""


_CEPH_SHARED = "a class of CephFS (cephfs.csi.ceph.com) serves several nodes"
_AWS_SHARED = "a class of Amazon EFS (efs.csi.aws.com) or FSx serves several nodes"
_GOOGLE_SHARED = "a class of Filestore (filestore.csi.storage.gke.io) serves several nodes"
_AZURE_SHARED = "a class of Azure Files (file.csi.azure.com) serves several nodes"
_BUCKET = (
    "a bucket is not a file system: renames are copies or are missing, and files cannot be changed in place. Read data "
    "from it; keep checkpoints elsewhere"
)

PROVISIONERS = {
    "cephfs.csi.ceph.com": Provisioner("CephFS CSI", SHARED),
    "rbd.csi.ceph.com": Provisioner("Ceph RBD CSI", ONE_NODE | {"ReadOnlyMany"}, _CEPH_SHARED),
    "nfs.csi.ceph.com": Provisioner("Ceph NFS CSI", SHARED),
    "kadalu": Provisioner("Kadalu (GlusterFS)", SHARED),
    "org.gluster.glusterfs": Provisioner("GlusterFS CSI", SHARED, caution="no longer maintained: use Kadalu"),
    "nfs.csi.k8s.io": Provisioner("NFS CSI", SHARED),
    "cluster.local/nfs-subdir-external-provisioner": Provisioner("NFS subdir provisioner", SHARED),
    "driver.longhorn.io": Provisioner(
        "Longhorn", SHARED, caution="ReadWriteMany goes through one NFS pod per volume, whose loss stalls all writers"
    ),
    "efs.csi.aws.com": Provisioner("Amazon EFS", SHARED),
    "fsx.csi.aws.com": Provisioner("Amazon FSx for Lustre", SHARED),
    "ebs.csi.aws.com": Provisioner("Amazon EBS", ONE_NODE, _AWS_SHARED),
    "s3.csi.aws.com": Provisioner("Mountpoint for Amazon S3", SHARED, caution=_BUCKET),
    "filestore.csi.storage.gke.io": Provisioner("Google Filestore", SHARED),
    "pd.csi.storage.gke.io": Provisioner("Google Persistent Disk", ONE_NODE | {"ReadOnlyMany"}, _GOOGLE_SHARED),
    "gcsfuse.csi.storage.gke.io": Provisioner("Cloud Storage FUSE", SHARED, caution=_BUCKET),
    "file.csi.azure.com": Provisioner("Azure Files", SHARED),
    "disk.csi.azure.com": Provisioner("Azure Disk", ONE_NODE, _AZURE_SHARED),
    "blob.csi.azure.com": Provisioner("Azure Blob", SHARED, caution=_BUCKET),
    "rancher.io/local-path": Provisioner(
        "local-path", ONE_NODE, "its volumes lie on one node, unless it is set up with sharedFileSystemPath"
    ),
    "topolvm.io": Provisioner("TopoLVM", ONE_NODE, "its volumes lie on one node"),
    "kubernetes.io/glusterfs": Provisioner("in-tree GlusterFS", SHARED, "use Kadalu", removed_in="1.26"),
    "kubernetes.io/cephfs": Provisioner("in-tree CephFS", SHARED, "use cephfs.csi.ceph.com", removed_in="1.31"),
    "kubernetes.io/rbd": Provisioner("in-tree Ceph RBD", ONE_NODE, "use rbd.csi.ceph.com", removed_in="1.31"),
}
"""Name of the driver, as classes name it → what it can do."""


def find_provisioner(driver: str) -> Provisioner | None:
    """Return what is known of a driver; Rook and others put a prefix with a dot before the name of Ceph's."""
    known = PROVISIONERS.get(driver)
    if known is None:
        known = next((each for name, each in PROVISIONERS.items() if driver.endswith(f".{name}")), None)
    return known
