"""This machine: files, git, gpg, the installed Kubernetes schemas, time limits. Acts.

Each module owns one outside thing. What is decided from their results lives in archive/ and check/.
"""
