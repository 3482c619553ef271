"""Handwritten digits, trained by Keras in one process: the shortest program that resumes and reports.

Start it with `python -m digits.train`; README.md says what it reads and writes.
"""

import os

# TensorFlow reads this when it is first imported: without it the program prints a dozen lines about its build.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
