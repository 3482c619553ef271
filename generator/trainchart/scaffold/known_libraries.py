"""Modules that images bring along, whether or not they are installed where the tool runs. Pure."""

from __future__ import annotations

import sys
from collections.abc import Mapping

_LIBRARIES = """
    absl accelerate apache_beam cv2 datasets deepspeed diffusers evaluate fire flax gensim google gym gymnasium h5py
    haiku horovod jax keras keras_cv keras_hub keras_nlp keras_tuner lightgbm lightning matplotlib mlflow networkx nltk
    numba numpy onnx onnxruntime optax pandas PIL plotly polars pyarrow pytorch_lightning ray requests scipy seaborn
    skimage sklearn spacy statsmodels sympy tensorboard tensorflow tensorflow_addons tensorflow_datasets
    tensorflow_decision_forests tensorflow_federated tensorflow_hub tensorflow_io tensorflow_model_optimization
    tensorflow_probability tensorflow_ranking tensorflow_recommenders tensorflow_text tensorflow_transform tf_agents
    tf_keras timm tokenizers torch torchvision tqdm transformers wandb xgboost yaml
"""
LIBRARIES = frozenset(_LIBRARIES.split())
KNOWN_MODULES = sys.stdlib_module_names | {"test"} | LIBRARIES
"""The standard library, whose list lacks its own tests, and libraries that training programs use."""
_WITH_TENSORFLOW = """
    absl astunparse certifi charset_normalizer flatbuffers gast google grpc h5py idna keras markdown markdown_it
    markupsafe ml_dtypes namex numpy opt_einsum optree packaging pasta PIL pip pkg_resources pygments requests rich
    setuptools six tensorboard tensorflow termcolor trainchart_training typing_extensions urllib3 werkzeug wrapt
"""
IMAGE_MODULES = sys.stdlib_module_names | frozenset(_WITH_TENSORFLOW.split())
"""What every training image has: see training-images/tensorflow/requirements/. Of google, it is protobuf."""
PACKAGES: Mapping[str, str] = {
    "official": "tf-models-official",
    "absl": "absl-py",
    "cv2": "opencv-python-headless",
    "haiku": "dm-haiku",
    "PIL": "pillow",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "bs4": "beautifulsoup4",
    "dateutil": "python-dateutil",
    "Levenshtein": "levenshtein",
    "tf_slim": "tf_slim",
    "pydot": "pydot",
}
"""Modules whose package has another name, and some more that programs use."""
