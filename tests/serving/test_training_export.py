"""What the training library exports is served as it is: a Keras model under a version's number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.serving.running import running
from tests.serving.small_models import copy_version
from tests.training.small_training import TRAINING, Settings, build_model
from trainchart_serving.content import SUMS_FILE, dump_sums, read_sums
from trainchart_training.leading.export import export_model

pytestmark = pytest.mark.tensorflow


def test_an_export_of_the_training_library_is_served(tmp_path: Path) -> None:
    keras_model = build_model(Settings())
    exported = Path(export_model(TRAINING, Settings(), keras_model, str(tmp_path)))
    base = tmp_path / "models"
    base.mkdir()
    (exported / SUMS_FILE).write_text(dump_sums(read_sums(exported)))
    copy_version(exported, base / "40")
    examples = np.arange(8, dtype=np.float32).reshape(2, 4) / 8
    expected = keras_model(examples, training=False).numpy()
    with running(base, "--version=40") as server:
        answer = server.post("predict", {"instances": examples.tolist()})
        assert answer.status == 200, answer.text
        assert np.allclose(answer.json["predictions"], expected, atol=1e-6)
        signature = server.ask("GET", "/v1/models/half/metadata").json["metadata"]["signature_def"]["signature_def"]
        (taken,) = signature["serving_default"]["inputs"].values()
        assert taken["dtype"] == "DT_FLOAT"
