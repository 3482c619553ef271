"""What the name of a metric says: which direction is better, and which metrics tell most of a training. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

HIGHER = "higher"
LOWER = "lower"

# fmt: off
_LOWER = frozenset((
    "loss", "error", "err", "mse", "mae", "rmse", "mape", "msle", "perplexity", "ppl", "nll", "wer", "cer", "fid",
    "brier", "crossentropy", "entropy", "divergence",
))
_HIGHER = frozenset((
    "accuracy", "acc", "auc", "precision", "recall", "sensitivity", "specificity", "f1", "bleu", "rouge", "meteor",
    "iou", "miou", "dice", "psnr", "ssim", "ndcg", "mrr", "r2", "likelihood", "reward",
))
# fmt: on
_TURNED = frozenset(["neg", "negative", "minus", "inverse"])
"""Words that turn the meaning of the others round."""
_OTHERS = frozenset(["scale", "weight", "count", "steps", "seconds", "threshold"])
"""Of a loss or an error, not the loss or the error itself: loss_scale."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+\d*|\d+")


def find_better(metric: str) -> str:
    """Return which direction of a metric is better, by the words of its name; empty where they do not say."""
    words = {word.lower() for word in _WORD.findall(metric.rpartition("/")[2])}
    is_lower, is_higher = bool(words & _LOWER), bool(words & _HIGHER)
    if is_lower == is_higher or words & (_TURNED | _OTHERS):
        return ""
    return LOWER if is_lower else HIGHER


def find_loss(metrics: Iterable[str]) -> str | None:
    """Return the name of the loss among metrics, else of the first that is called some kind of loss."""
    names = list(metrics)
    return "loss" if "loss" in names else next((name for name in names if "loss" in name.lower()), None)


def choose_headline(metrics: Sequence[str]) -> list[str]:
    """Return the one or two metrics that tell most: the loss, and what is better higher; else the first."""
    loss = find_loss(metrics)
    higher = [name for name in metrics if find_better(name) == HIGHER]
    # What an evaluator measures counts for more than what the training program does.
    score = next((name for name in higher if "/" in name), next(iter(higher), None))
    return [name for name in (loss, score) if name is not None] or list(metrics[:1])
