"""The first files of a model: spec and script as text, decided from a name, a strategy and maybe an own script. Pure.

Nothing is read or written here; actions/init.py does. The script is data, in train.py.txt: a
program of the training library, the same for every strategy.
"""
