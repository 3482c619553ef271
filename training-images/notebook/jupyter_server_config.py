"""How JupyterLab runs beside a release: no one gets in without the token, and TensorBoard is behind it, too.

Jupyter executes this file at its start, with `get_config` in reach.
"""

import os

TOKEN_LENGTH = 16
"""Characters that a token must have at least."""

token = os.environ.get("JUPYTER_TOKEN", "")
if len(token) < TOKEN_LENGTH:
    # Without one, Jupyter would invent and print it; with an empty one, it would let everyone in.
    raise SystemExit(
        f"JUPYTER_TOKEN has {len(token)} characters, expected {TOKEN_LENGTH} or more: set it from a Secret, "
        "made for instance with: kubectl create secret generic NAME --from-literal=token=$(openssl rand -hex 16)"
    )

c = get_config()  # noqa: F821
c.IdentityProvider.token = token
c.ServerApp.ip = "0.0.0.0"
c.ServerApp.port = 8888
c.ServerApp.port_retries = 0
c.ServerApp.open_browser = False
c.ServerApp.root_dir = "/notebooks"
# A kernel holds what it has loaded, memory of GPUs too, long after its person has gone.
c.MappingKernelManager.cull_idle_timeout = 60 * int(os.environ.get("IDLE_MINUTES", "120"))
c.MappingKernelManager.cull_connected = True
c.ServerProxy.servers = {
    "tensorboard": {
        "command": [
            *("python", "-m", "tensorboard.main", "--host=127.0.0.1", "--port={port}"),
            f"--logdir={os.environ.get('LOG_DIR', '/runs')}",
            "--path_prefix={base_url}tensorboard",
        ],
        "absolute_url": True,
        "timeout": 60,
        "launcher_entry": {"title": "TensorBoard"},
    }
}
