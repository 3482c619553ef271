"""Tests that run what the docs show."""
