"""Checkpoints without a claim: gs:// is TensorFlow's own, s3:// is none of its file systems any more."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.testcluster.pki import Authority
from tests.training import google_storage
from tests.training.small_training import TRAINING, Settings, Trainer
from trainchart_training import Hook

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(120)]


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URI of a bucket in a stand-in for Google Cloud Storage, which this process takes for the real one."""
    authority, certificate = Authority(), tmp_path / "storage.pem"
    pair = authority.issue("google-storage", addresses=google_storage.HOSTS)
    certificate.write_bytes(pair.key + pair.certificate)
    (tmp_path / "authority.pem").write_bytes(authority.certificate)
    with subprocess.Popen(
        [sys.executable, google_storage.__file__, str(certificate)], stdout=subprocess.PIPE, text=True
    ) as storage:
        assert storage.stdout
        port = storage.stdout.readline().strip()
        for name in ("https_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.setenv(name, "")
        monkeypatch.setenv("CURL_CA_BUNDLE", str(tmp_path / "authority.pem"))
        # No token from the machine's metadata: the stand-in lets everybody in.
        monkeypatch.setenv("NO_GCE_CHECK", "true")
        yield "gs://bucket"
        storage.kill()


def test_training_in_a_google_bucket_saves_resumes_and_exports(trainer: Trainer, bucket: str) -> None:
    import tensorflow as tf

    from trainchart_training.saving.checkpoints import Checkpoints

    folder = f"{bucket}/run"
    trainer.place = replace(trainer.place, checkpoints_dir=folder, log_dir=f"{folder}/logs")
    assert trainer.run(max_steps=20) == 0
    assert Checkpoints(folder).steps() == [20, 0]

    begun: list[int] = []

    class Watch(Hook):
        def begin(self, model: Any, step: int) -> None:
            begun.append(step)

    assert trainer.run(replace(TRAINING, hooks=[Watch()]), max_steps=40) == 0
    assert begun == [20]
    assert Checkpoints(folder).steps() == [40, 20]
    served = tf.saved_model.load(f"{folder}/saved_model").signatures["serving_default"]
    assert served(inputs=tf.ones((3, 4)))["outputs"].shape == (3, 1)
    assert tf.io.gfile.glob(f"{folder}/logs/worker/events.*")


def test_store_tensorflow_cannot_reach_is_refused_at_the_start(
    trainer: Trainer, caplog: pytest.LogCaptureFixture
) -> None:
    from trainchart_training.roles import _guard

    assert _guard(TRAINING, Settings(), replace(trainer.place, checkpoints_dir="s3://bucket/run")) == 2
    said = "has no file system for s3://bucket/run, only for file://, gs://, ram://"
    assert said in caplog.text
