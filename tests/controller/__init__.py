"""Tests of the run controller against a fake Kubernetes API."""
