"""Acts: processes, ports, files and locks of local runs."""
