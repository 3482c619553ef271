"""Acts: calls registries and repositories of charts."""
