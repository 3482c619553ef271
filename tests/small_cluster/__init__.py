"""A release's objects, and a small API server that lists them."""
