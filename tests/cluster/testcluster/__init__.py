"""A real two-node Kubernetes of the tests' own, in namespaces that vanish with the process that asked for it.

`cluster.py` starts and stops it from outside, `keeper.py` is the first process inside. What is to be run is decided by
pure modules (`config`, `components`, `files`), so that it can be read and tested without root.
"""
