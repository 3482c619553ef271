"""Releases on a cluster: what the Kubernetes API says about them, and what follows from it.

kubernetes_api.py and kubeconfig.py act, and releases.py asks; the rest decides and words, and is pure.
"""
