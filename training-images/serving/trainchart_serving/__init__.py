"""A model server that speaks the REST and gRPC API of TensorFlow Serving, for SavedModels and on TensorFlow in Python.

docs/serving.md says when to prefer it, and when TensorFlow Serving's own program.
"""
