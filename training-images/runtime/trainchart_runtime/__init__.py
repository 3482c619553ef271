"""Pure knowledge shared by launcher, run controller, local run and CLI.

Standard library only and Python >= 3.8, because the launcher carries this package into any training image.
Nothing here starts a process, opens a socket or reads a clock.
"""
