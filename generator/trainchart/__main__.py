"""Entry point of `python -m trainchart`."""

from trainchart.cli.app import main

main()
