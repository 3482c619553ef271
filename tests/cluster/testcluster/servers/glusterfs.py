"""GlusterFS: one management daemon, a volume of three copies (bricks), each served by a process of its own. Pure."""

from __future__ import annotations

from ..components import Component
from ..config import CONTROL_PLANE_ADDRESS
from .plan import Await, Mount, Run, Server, find_folder, find_mounts

NAME = "glusterfs"
VOLUME = "volumes"
BRICKS = (1, 2, 3)
_FOLDER = find_folder(NAME)

CLI = (
    *("timeout", "60", "gluster", "--mode=script"),
    *(f"--glusterd-sock={_FOLDER}/glusterd.sock", f"--log-file={_FOLDER}/logs/cli.log"),
)

_OWN_STATE = (
    *("unshare", "--mount", "--propagation", "unchanged", "sh", "-c"),
    f'mount --bind {_FOLDER}/logs /var/log/glusterfs && mount -t tmpfs tmpfs /var/lib/glusterd && exec "$@"',
    "glusterd",
)
"""Put before glusterd: it and the bricks that it starts write into these folders whatever their options say."""


def brick(number: int) -> str:
    """Return the folder of a brick."""
    return f"{_FOLDER}/brick{number}"


def pid_file(number: int) -> str:
    """Return the file that names the process of a brick."""
    path = brick(number).replace("/", "-")
    return f"{_FOLDER}/run/vols/{VOLUME}/{CONTROL_PLANE_ADDRESS}{path}.pid"


def dump_glusterd() -> str:
    """Dump the configuration of the management daemon."""
    options = {
        "working-directory": f"{_FOLDER}/state",
        "run-directory": f"{_FOLDER}/run",
        "glusterd-sockfile": f"{_FOLDER}/glusterd.sock",
        "transport-type": "socket",
        "transport.socket.bind-address": CONTROL_PLANE_ADDRESS,
        "ping-timeout": "0",
    }
    lines = [f"    option {name} {value}" for name, value in options.items()]
    return "\n".join(["volume management", "    type mgmt/glusterd", *lines, "end-volume", ""])


def plan_glusterfs() -> Server:
    """Plan the server; the volume refuses writes while two of its three bricks are gone."""
    glusterd = ("glusterd", "--no-daemon", "-f", f"{_FOLDER}/glusterd.vol", "-p", f"{_FOLDER}/glusterd.pid")
    bricks = [f"{CONTROL_PLANE_ADDRESS}:{brick(number)}" for number in BRICKS]
    ids = f"cat {_FOLDER}/run/vols/*/*.pid {_FOLDER}/run/shd/*/*.pid 2>/dev/null | xargs -r kill -9 2>/dev/null; true"
    return Server(
        name=NAME,
        packages=("glusterfs-server",),
        programs=("glusterd", "gluster", "glusterfs", "glusterfsd"),
        files={"glusterd.vol": dump_glusterd()},
        folders=("state", "run", "logs", *(f"brick{number}" for number in BRICKS)),
        steps=(
            Component(NAME, (*_OWN_STATE, *glusterd, "-l", f"{_FOLDER}/logs/glusterd.log")),
            # The command itself waits two minutes for a daemon that is not there yet.
            Await(("timeout", "2", *CLI[2:], "pool", "list"), "localhost"),
            Run((*CLI, "volume", "create", VOLUME, "replica", "3", *bricks, "force")),
            Run((*CLI, "volume", "set", VOLUME, "network.ping-timeout", "5")),
            Run((*CLI, "volume", "start", VOLUME)),
        ),
        mounts=tuple(_plan_mount(where) for where in find_mounts(NAME)),
        last_steps=(Run(("sh", "-c", ids)),),
    )


def _plan_mount(where: str) -> Mount:
    node, path = find_mounts(NAME)[where]
    server = (f"--volfile-server={CONTROL_PLANE_ADDRESS}", f"--volfile-id={VOLUME}")
    argv = ("glusterfs", "--no-daemon", *server, "-l", f"{_FOLDER}/logs/mount-{where}.log", str(path))
    return Mount(Component(f"{NAME}-{where}", argv, node), path)
