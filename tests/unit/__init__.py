"""Tests of single modules, in the generator's folders."""
