"""Checking charts: pure rules over files, lint messages and renderings, and the runner that sorts findings.

Engines, files and the Kubernetes schemas come in as values; actions/check.py gathers them.
"""
