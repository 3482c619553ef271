"""Acting code that meets this machine: files, the Helm engines, git and the installed Kubernetes schemas.

Each module owns one outside thing. What is decided from their results lives in archive/ and check/.
"""
