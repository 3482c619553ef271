"""One step under every strategy, and the strategies that run it."""
