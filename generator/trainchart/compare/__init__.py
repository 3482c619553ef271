"""Two versions of a chart as values: what differs, what an upgrade does to a training, and the next version. Pure."""
