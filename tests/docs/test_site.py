"""The documentation builds as a site: no dead link, no page that nothing leads to, and search knows every page."""

from __future__ import annotations

import json
import re
from pathlib import Path

from sphinx.cmd.build import main as build

ROOT = Path(__file__).parents[2]


def test_the_site_builds_and_its_search_finds_every_page(tmp_path: Path) -> None:
    assert (
        build(
            ["-q", "-W", "--keep-going", "-c", str(ROOT / "docs"), "-d", str(tmp_path / "d"), str(ROOT), str(tmp_path)]
        )
        == 0
    )
    index = (tmp_path / "searchindex.js").read_text().removeprefix("Search.setIndex(").removesuffix(")")
    found = {Path(f"{name}.md") for name in json.loads(index)["docnames"]}
    assert found >= {page.relative_to(ROOT) for page in (ROOT / "docs").rglob("*.md")}
    start = re.search(r"url=(.*)\">", (tmp_path / "index.html").read_text())
    assert start is not None
    assert (tmp_path / start[1]).is_file()
