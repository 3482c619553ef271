"""Chart repositories: OCI registries, ChartMuseum, and folders with an index.yaml. io/ acts, the rest is pure.

`Repository` (repository.py) is what the rest of trainchart sees.
"""
