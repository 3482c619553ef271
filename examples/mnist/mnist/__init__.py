"""Handwritten digits, trained with TensorFlow's ParameterServerStrategy: chief, workers, ps and evaluator.

Start it with `python -m mnist.train`; README.md says how the parts fit together.
"""

import os

# TensorFlow reads this when it is first imported: without it every process prints a dozen lines about its build.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
