"""Acts: the HTTP server that the launcher and the run controller share."""
