"""Releases on a cluster: what the Kubernetes API says about them, and what follows. io/ reads, the rest is pure."""
