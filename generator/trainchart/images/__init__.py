"""Images: what goes into one, how it is called, and the programs that build and push it.

Deciding is in the pure modules plan.py, inputs.py, requirements.py, ignore.py and builders.py; code_folder.py and
program.py act.
"""
