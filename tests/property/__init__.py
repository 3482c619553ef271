"""Property tests of specs and values."""
