"""Where to get a Python module that a program lacks: from a package, a repository, or the user. Pure.

Only known packages are suggested: anyone can publish a package with the name of an unknown module.
"""

from __future__ import annotations

import shlex

from trainchart.scaffold.known_libraries import LIBRARIES, PACKAGES

TENSORFLOW_PACKAGE = "tensorflow-cpu==2.21.0"
"""What the README installs for local runs; it brings keras."""
_PACKAGES = {
    "tensorflow": (TENSORFLOW_PACKAGE,),
    "keras": (TENSORFLOW_PACKAGE,),
    "tf_keras": (TENSORFLOW_PACKAGE, "tf_keras"),
    **{module: (package,) for module, package in PACKAGES.items()},
}
"""Modules whose package has another name or needs another one beside it, and some more that programs use."""
_NAMESPACES = {"google"}
"""Many packages share the name."""
_REPOSITORIES = {
    **dict.fromkeys(
        ("object_detection", "slim", "nets", "deployment", "deeplab", "delf", "inception", "lstm_object_detection"),
        "https://github.com/tensorflow/models, in research/",
    ),
    "tensorflow_examples": "https://github.com/tensorflow/examples",
    "tensor2tensor": "https://github.com/tensorflow/tensor2tensor, which is not developed further",
    "nmt": "https://github.com/tensorflow/nmt",
    "bert": "https://github.com/google-research/bert",
}
"""Modules that programs copy from a repository: no package of that name has them."""


def explain_missing(module: str, python: str) -> str:
    """Return how to get a module for the program that is started with `python`."""
    if module in _REPOSITORIES:
        return f"Copy {module} from {_REPOSITORIES[module]}, into the code folder: no package of that name contains it."
    if module in _PACKAGES or (module in LIBRARIES and module not in _NAMESPACES):
        install = shlex.join([python, "-m", "pip", "install", *_PACKAGES.get(module, (module,))])
        return f"Install the module, `{install}`, or choose another Python with --python."
    return (
        f"Install the package that contains {module}, which can have another name; if the module is yours, put it into "
        "the code folder; or choose another Python with --python."
    )
