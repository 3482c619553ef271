"""What tests break in their own cluster, each thing mended by itself at the end of the test.

Most faults are data: `network.partition_node("node2")` returns a Fault, and the fixture `faults` inflicts it and undoes
it. What Kubernetes itself repairs, such as a killed process, is a plain function of `processes` instead.
"""

from .fault import Change, Fault
from .site import Site
from .stack import Faults, UndoFailed

__all__ = ["Change", "Fault", "Faults", "Site", "UndoFailed"]
