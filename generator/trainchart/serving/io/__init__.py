"""Servers of models: started on this machine, and asked over REST."""
