"""Say to Artifact Hub whose a chart is: by a file beside an index, or an artifact beside a registry's versions."""

from __future__ import annotations

from pathlib import Path

from trainchart.errors import PublishError, ToolError
from trainchart.host.files import read_bytes
from trainchart.kubernetes_yaml import YamlError, parse_mapping
from trainchart.publish.index_folder import IndexRepository
from trainchart.publish.io.oci import OciRepository
from trainchart.publish.repository import OWNERS_FILE, Repository


def read_owners(path: Path | None) -> bytes:
    """Return the file's content; nothing where there is no file to be published. Raises ToolError."""
    if path is None:
        return b""
    content = read_bytes(path)
    try:
        said = parse_mapping(content.decode())
    except (UnicodeDecodeError, YamlError) as error:
        raise ToolError(f"{path} cannot be read: {error}") from error
    if not said.keys() & {"repositoryID", "owners"}:
        raise ToolError(
            f"{path} says neither repositoryID nor owners",
            hint="see https://github.com/artifacthub/hub/blob/master/docs/metadata/artifacthub-repo.yml",
        )
    return content


def put_owners(repository: Repository, name: str, content: bytes) -> None:
    """Put what read_owners returns into a repository, for the chart `name` where each has its own.

    Raises PublishError.
    """
    if not content:
        return
    if isinstance(repository, IndexRepository):
        repository.put_owners(content)
    elif isinstance(repository, OciRepository):
        repository.put_owners(name, content)
    else:
        raise PublishError(
            f"{repository.url} is neither a folder with an index.yaml nor a registry: no place for {OWNERS_FILE}",
            hint="publish without --artifacthub-repo, and put the file where the server serves its index from",
        )
