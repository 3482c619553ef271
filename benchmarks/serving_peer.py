"""The same model behind LitServe: `python -m benchmarks.serving_peer FOLDER PORT BATCH` serves it at /predict.

LitServe knows neither SavedModels nor TensorFlow's API, so this is the code that it wants for each model.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import litserve
import numpy as np

WAIT_SECONDS = 0.002


class Api(litserve.LitAPI):  # type: ignore[misc]
    """Takes one example a request; LitServe stacks those of a batch."""

    def setup(self, device: Any) -> None:
        import tensorflow as tf

        self.loaded = tf.saved_model.load(str(Path(sys.argv[1]) / "1"))
        self.function = self.loaded.signatures["serving_default"]

    def decode_request(self, request):  # type: ignore[no-untyped-def]  # LitServe reads a type from here
        return np.asarray(request["instances"][0], "float32")

    def predict(self, inputs: Any) -> Any:
        import tensorflow as tf

        array = inputs if self.max_batch_size > 1 else inputs[None]
        return self.function(inputs=tf.constant(array))["outputs"].numpy()

    def encode_response(self, output: Any) -> Any:
        return {"predictions": output.tolist()}


if __name__ == "__main__":
    api = Api(max_batch_size=int(sys.argv[3]), batch_timeout=WAIT_SECONDS)
    server = litserve.LitServer(api, accelerator="cpu")
    server.run(host="127.0.0.1", port=int(sys.argv[2]), generate_client_file=False, log_level="error")
