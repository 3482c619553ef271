"""The run controller: watches the pods of one release, records the run's verdict and frees what it holds.

It travels as a zipapp of the standard library, like the launcher (trainchart_launcher/bundle.py packs both): its start
gates every pod but the first of each role. What to do is decided in trainchart_runtime (run/rules.py).
"""
