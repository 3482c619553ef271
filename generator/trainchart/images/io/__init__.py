"""Acts: reads code folders, runs docker, podman and buildah."""
