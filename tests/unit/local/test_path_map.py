"""The translation of container paths."""

from __future__ import annotations

import pytest

from trainchart.local.path_map import PathMap

PATHS = PathMap(
    (
        ("/data", "/here/claims/data"),
        ("/data/extra", "/here/claims/extra"),
        ("/app", "/home/me/code"),
    )
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/data", "/here/claims/data"),
        ("/data/train.csv", "/here/claims/data/train.csv"),
        ("/data/extra/x", "/here/claims/extra/x"),
        ("--in=/data --out=/app/out", "--in=/here/claims/data --out=/home/me/code/out"),
        ("/app/bin:/data", "/home/me/code/bin:/here/claims/data"),
        ('{"path": "/data"}', '{"path": "/here/claims/data"}'),
        ("file:///data/x", "file:///here/claims/data/x"),
        ("/database", "/database"),
        ("/data-2", "/data-2"),
        ("/data.csv", "/data.csv"),
        ("/mnt/data", "/mnt/data"),
        ("s3://bucket/data", "s3://bucket/data"),
        ("gs://data/x", "gs://data/x"),
        ("https://example.com/app", "https://example.com/app"),
        ("./data", "./data"),
        ("", ""),
    ],
)
def test_only_whole_paths_are_translated(text: str, expected: str) -> None:
    assert PATHS.translate(text) == expected


def test_a_translated_path_is_not_translated_again() -> None:
    paths = PathMap((("/tmp", "/tmp/run/tmp"), ("/run", "/tmp/run/state")))
    assert paths.translate("/tmp/a /run/b") == "/tmp/run/tmp/a /tmp/run/state/b"


def test_without_paths_text_stays() -> None:
    assert PathMap(()).translate("/data") == "/data"
