"""Packs: what a platform team decides for every model, and the project file that names them. Pure."""
