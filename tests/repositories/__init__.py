"""Servers of charts on loopback, and a proxy that breaks them."""
