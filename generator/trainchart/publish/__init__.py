"""Acting code that meets chart repositories: OCI registries, ChartMuseum, and folders with an index.yaml.

`Repository` (repository.py) is what the rest of trainchart sees. index.py, location.py, credentials.py and
oci_manifest.py are pure.
"""
