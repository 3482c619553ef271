"""Trains a chart as processes of this machine: plan.py decides, io/ acts.

Everything is taken from rendered manifests, so that what runs here is what a cluster gets.
"""
