"""Modules that images bring along, whether or not they are installed where the tool runs. Pure."""

from __future__ import annotations

import sys

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
