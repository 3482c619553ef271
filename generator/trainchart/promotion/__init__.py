"""Decides how the export of a training goes live on a model server: gates, records, history, rollouts. Pure."""
