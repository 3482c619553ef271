"""List what is published of a chart, the newest version first."""

from __future__ import annotations

from collections.abc import Mapping

from trainchart.actions.diff import nothing_published
from trainchart.actions.support.repository_access import Address, open_repository
from trainchart.chart_version import is_chart_version, version_key
from trainchart.publish.repository import PublishedVersion


def list_published(name: str, from_: Address, environment: Mapping[str, str]) -> tuple[PublishedVersion, ...]:
    """Return all published versions of a chart. Raises RepositoryNotFound where there are none."""
    with open_repository(from_, environment) as repository:
        found = [version for version in repository.list_versions(name) if is_chart_version(version.version)]
        if not found:
            raise nothing_published(repository, name)
    return tuple(sorted(found, key=lambda version: version_key(version.version), reverse=True))
