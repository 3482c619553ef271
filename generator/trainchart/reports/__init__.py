"""What is known about a run, wherever it runs: one type, one JSON form, one wording.

Pure. local/ and cluster/ fill reports in, actions/ fetches them, cli/ prints them.
"""
