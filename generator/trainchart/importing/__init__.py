"""Reads what users of other tools have into a model spec, and lists what that cannot say. Pure."""
