"""trainchart: one short model spec plus training code becomes a versioned Helm chart and a matching image."""

__version__ = "0.1.0"
