"""A model that is served: versions come, take over and go, and broken ones never take a request."""

from __future__ import annotations

import asyncio
import dataclasses
import re
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
import pytest

from tests.serving.small_models import copy_version, write_warmup
from trainchart_serving import live
from trainchart_serving.content import SUMS_FILE, dump_sums, hash_content, read_sums
from trainchart_serving.failures import Code, ServingError
from trainchart_serving.live import LiveModel, State, prepare_model
from trainchart_serving.model import Model
from trainchart_serving.versions import VersionPolicy

pytestmark = pytest.mark.tensorflow


def served(base: Path, policy: VersionPolicy | None = None) -> LiveModel:
    return LiveModel("half", base, policy or VersionPolicy())


def run(body: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(body(), 60))


def ask(model: LiveModel, x: float, version: int | None = None) -> float:
    with model.lease(version) as leased:
        signature = leased.find_signature("")
        return float(leased.run(signature, {"x": np.array([x], np.float32)})["y"][0])


def states(model: LiveModel) -> dict[int, State]:
    return {status.version: status.state for status in model.list_status()}


def test_a_new_version_takes_over_and_the_old_one_ends(base: Path, third: Path) -> None:
    async def body() -> None:
        model = served(base)
        await model.refresh()
        assert (ask(model, 10), states(model)) == (7, {1: State.AVAILABLE})
        copy_version(third, base / "2")
        with model.lease() as old:
            await model.refresh()
            await asyncio.sleep(0.05)
            # The request under way keeps the old version; new ones get the new version.
            assert (old.version, ask(model, 10)) == (1, 32)
            assert states(model) == {2: State.AVAILABLE, 1: State.UNLOADING}
            with pytest.raises(ServingError, match=r"Specific\(half, 1\)"), model.lease(1):
                pass
        await model.close()
        assert states(model) == {2: State.END, 1: State.END}

    run(body)


def test_no_request_is_lost_while_versions_change(base: Path, third: Path) -> None:
    async def body() -> None:
        model = served(base)
        await model.refresh()
        answers: list[float] = []

        async def keep_asking() -> None:
            while True:
                with model.lease() as leased:
                    inputs = {"x": np.array([10], np.float32)}
                    found = await asyncio.to_thread(leased.run, leased.find_signature(""), inputs)
                    answers.append(float(found["y"][0]))

        clients = [asyncio.create_task(keep_asking()) for _ in range(4)]
        copy_version(third, base / "2")
        await model.refresh()
        taken_over = len(answers)
        while len(answers) < taken_over + 50:
            await asyncio.sleep(0.01)
        assert not any(client.done() for client in clients)
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        assert taken_over > 4
        assert set(answers) == {7, 32}
        assert answers[taken_over:].count(7) <= len(clients), "only requests under way end with the old version"
        assert answers.count(32) > 40
        await model.close()

    run(body)


def empty_graph(folder: Path) -> None:
    (folder / "saved_model.pb").write_bytes(b"")


def no_graph(folder: Path) -> None:
    (folder / "saved_model.pb").unlink()


def cut_variables(folder: Path) -> None:
    path = next((folder / "variables").glob("variables.data*"))
    path.write_bytes(path.read_bytes()[:-2])


def wrong_weights(folder: Path) -> None:
    path = next((folder / "variables").glob("variables.data*"))
    path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes()))


def random_graph(folder: Path) -> None:
    (folder / "saved_model.pb").write_bytes(bytes(range(256)) * 20)


def bad_warmup(folder: Path) -> None:
    (folder / "assets.extra").mkdir()
    (folder / "assets.extra" / "tf_serving_warmup_requests").write_bytes(b"not a record")


def refused_warmup(folder: Path) -> None:
    write_warmup(folder, [[1.0, 2.0]])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (empty_graph, "no graph with the tag serve"),
        (no_graph, "saved_model.pb"),
        (random_graph, "saved_model.pb"),
        (cut_variables, "cannot load the SavedModel"),
        (wrong_weights, "cannot load the SavedModel|[Cc]hecksum|corrupt"),
        (bad_warmup, "cannot read assets.extra"),
        (refused_warmup, r"warm-up request 1 failed: input x: the shape is \[1,2\]"),
    ],
)
def test_a_broken_version_never_serves(
    harm: Callable[[Path], None], said: str, base: Path, third: Path, tmp_path: Path
) -> None:
    broken = Path(shutil.copytree(third, tmp_path / "broken"))
    harm(broken)

    async def body() -> None:
        model = served(base)
        await model.refresh()
        copy_version(broken, base / "2")
        await model.refresh()
        assert (ask(model, 10), states(model)) == (7, {2: State.END, 1: State.AVAILABLE})
        newest = model.list_status()[0]
        assert newest.code is not Code.OK
        assert re.search(said, newest.message), newest.message
        await model.refresh()
        assert model.loads == {"success": 1, "failure": 1}, "tried again though nothing changed"
        # The rest of the files arrived, or a whole copy took its place.
        shutil.rmtree(base / "2")
        copy_version(third, base / "2")
        await model.refresh()
        assert (ask(model, 10), model.available) == (32, [2])
        await model.close()

    run(body)


def test_a_restart_beside_a_broken_version_serves_the_last(base: Path, third: Path) -> None:
    no_graph(copy_version(third, base / "2"))

    async def body() -> None:
        model = served(base)
        await model.refresh()
        assert (ask(model, 10), states(model)) == (7, {2: State.END, 1: State.AVAILABLE})
        await model.close()

    run(body)


def test_several_versions_are_served_at_once(base: Path, third: Path) -> None:
    copy_version(third, base / "2")

    async def body() -> None:
        model = served(base, VersionPolicy(latest=2))
        await model.refresh()
        assert (ask(model, 10), ask(model, 10, 1), ask(model, 10, 2)) == (32, 7, 32)
        await model.close()

    run(body)


def test_a_pinned_version_stays_whatever_else_comes(base: Path, third: Path) -> None:
    copy_version(third, base / "2")

    async def body() -> None:
        model = served(base, VersionPolicy(pinned=(1, 7)))
        await model.refresh()
        assert (ask(model, 10), model.available) == (7, [1])
        assert model.problem == f"version 7 is not in {base}"
        await model.close()

    run(body)


def test_a_folder_that_vanishes_does_not_end_what_serves(base: Path) -> None:
    async def body() -> None:
        model = served(base)
        await model.refresh()
        base.rename(base.with_name("away"))
        await model.refresh()
        assert (ask(model, 10), model.problem) == (7, f"cannot read {base}: No such file or directory")
        await model.close()

    run(body)


def test_the_content_hash_is_that_of_sha256sum(base: Path) -> None:
    script = f"find . -type f ! -name {SUMS_FILE} -printf '%P\\0' | LC_ALL=C sort -z | xargs -0 sha256sum > {SUMS_FILE}"
    subprocess.run(["bash", "-c", script], cwd=base / "1", check=True)
    said = subprocess.run(["sha256sum", SUMS_FILE], cwd=base / "1", check=True, capture_output=True, text=True).stdout
    assert (base / "1" / SUMS_FILE).read_text() == dump_sums(read_sums(base / "1"))
    content = f"sha256:{said.split()[0]}"
    assert hash_content(read_sums(base / "1")) == content

    async def body() -> None:
        model = served(base, VersionPolicy(content={1: content}))
        await model.refresh()
        assert [(status.state, status.content) for status in model.list_status()] == [(State.AVAILABLE, content)]
        await model.close()

    run(body)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: (folder / "more").write_text(""), "not in the list: more"),
        (lambda folder: (folder / "fingerprint.pb").unlink(), "missing: fingerprint.pb"),
        (lambda folder: (folder / "fingerprint.pb").write_bytes(b"x"), "changed: fingerprint.pb"),
        (lambda folder: (folder / SUMS_FILE).write_text("hello\n"), "SHA256SUMS:1 is not a line of sha256sum"),
    ],
)
def test_a_version_must_hold_what_its_list_says(change: Callable[[Path], object], said: str, base: Path) -> None:
    folder = base / "1"
    (folder / SUMS_FILE).write_text(dump_sums(read_sums(folder)))
    change(folder)
    with pytest.raises(ServingError, match=said) as caught:
        prepare_model(folder, 1, None, 1)
    assert caught.value.code is Code.DATA_LOSS


def test_a_version_must_have_the_pinned_content(base: Path) -> None:
    with pytest.raises(ServingError, match="but sha256:00 is pinned"):
        prepare_model(base / "1", 1, "sha256:00", 1)


def test_a_version_brings_its_warm_up_requests(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    run_model = Model.run
    monkeypatch.setattr(Model, "run", lambda *words: (asked.append(words[2]["x"].tolist()), run_model(*words))[1])
    write_warmup(base / "1", [1.0], [2.0, 3.0])
    prepare_model(base / "1", 1, None, 8)
    assert asked == [[1.0], [2.0, 3.0]]


def test_a_version_that_fails_by_chance_is_tried_again(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [OSError("the claim is away"), ServingError(Code.RESOURCE_EXHAUSTED, "no memory")]

    def prepare(*words: object) -> Model:
        if failures:
            raise failures.pop()
        return prepare_model(base / "1", 1, None, 1)

    async def body() -> None:
        model = LiveModel("half", base, VersionPolicy(), prepare=prepare)
        await model.refresh()
        assert model.list_status()[0].message == "no memory"
        await model.refresh()
        assert model.loads["failure"] == 1, "tried again at once"
        monkeypatch.setattr(live, "RETRY_SECONDS", 0.0)
        model._broken = {1: dataclasses.replace(model._broken[1], retry_at=0.0)}
        await model.refresh()
        assert (model.list_status()[0].message, model.loads["failure"]) == ("OSError: the claim is away", 2)
        await model.refresh()
        assert (ask(model, 10), model.loads) == (7, {"success": 1, "failure": 2})
        await model.close()

    run(body)
