#!/bin/sh
# Releases every model of models/ whose chart has changed. Safe to run again, also after it was cut off.
# REPOSITORY is what `trainchart release --to` takes; log in before, with helm registry login or TRAINCHART_PASSWORD.
set -eu

: "${REPOSITORY:?set it to an address such as oci://registry.example.com/charts}"
trainchart generate
trainchart check charts/*
for spec in models/*.yaml; do
  trainchart release "$spec" --to "$REPOSITORY"
done
