"""The launcher: starts one training program in one pod, watches over it and says how it ended.

It travels as a zipapp of its own (bundle.py) into any image with Python >= 3.8, so: standard library only,
and nothing is imported before the program's start that the start does not need.
"""
