"""Serves the console's pages."""
