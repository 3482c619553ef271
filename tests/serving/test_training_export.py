"""What the training library exports is served unchanged: a Keras model, with the list of its files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from tests.serving.running import running
from tests.serving.small_models import copy_version
from tests.training.small_training import TRAINING, Settings, build_model
from trainchart_serving.content import SUMS_FILE
from trainchart_serving.failures import ServingError
from trainchart_serving.live import prepare_model
from trainchart_training.leading.export import export_model
from trainchart_training.leading.export_record import RECORD
from trainchart_training.saving.origin import Origin

pytestmark = pytest.mark.tensorflow


def test_an_export_of_the_training_library_is_served(tmp_path: Path) -> None:
    keras_model = build_model(Settings())
    exported = Path(export_model(TRAINING, Settings(), keras_model, str(tmp_path), Origin(), 40))
    base = tmp_path / "models"
    base.mkdir()
    copy_version(exported, base / str(json.loads((exported / RECORD).read_text())["step"]))
    content = hashlib.sha256((exported / SUMS_FILE).read_bytes()).hexdigest()
    examples = np.arange(8, dtype=np.float32).reshape(2, 4) / 8
    expected = keras_model(examples, training=False).numpy()
    with running(base, "--version=40", f"--content=40=sha256:{content}") as server:
        answer = server.post("predict", {"instances": examples.tolist()})
        assert answer.status == 200, answer.text
        assert np.allclose(answer.json["predictions"], expected, atol=1e-6)
        signatures = server.ask("GET", "/v1/models/half/metadata").json["metadata"]["signature_def"]["signature_def"]
        (taken,) = signatures["serving_default"]["inputs"].values()
        assert taken["dtype"] == "DT_FLOAT"
    (base / "40" / RECORD).write_text("{}")
    with pytest.raises(ServingError, match=f"the files differ from SHA256SUMS: changed: {RECORD}"):
        prepare_model(base / "40", 40, None, 1)
