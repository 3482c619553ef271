"""Chart archives as values: what belongs in one, its identity, its bytes, and the lock of a generated chart.

Pure: files come in as a mapping of relative path to content and go out as bytes; host/ reads and writes them.
"""
