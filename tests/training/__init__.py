"""Tests of the training library with TensorFlow."""
