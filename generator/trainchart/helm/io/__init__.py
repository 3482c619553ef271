"""Acts: runs the Helm engine, as a Python package or as a program."""
