#!/bin/sh
# Checks every model of models/, and prints in Markdown what an upgrade to it would do: the comment for a merge request.
# REPOSITORY is what `trainchart diff --from` takes; log in as for release.sh.
set -eu

: "${REPOSITORY:?set it to an address such as oci://registry.example.com/charts}"
trainchart generate >&2
trainchart check charts/* >&2
# A model that was never released has nothing to compare with; its part of the comment says so.
for spec in models/*.yaml; do
  printf '```\n%s\n```\n' "$(trainchart diff "$spec" --from "$REPOSITORY" 2>&1 || true)"
done
