"""Decides whether a cluster, or this machine, can run a chart: needs, room, quotas, storage, probes. Pure."""
