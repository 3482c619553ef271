"""Flags that name a folder or file: outputs go into the run's volumes, data comes from one. Secrets stay out. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import PurePath, PurePosixPath

from trainchart.scaffold.flag import Declaration, split_words, to_camel_case
from trainchart.secret_names import names_secret
from trainchart_runtime import contract

DATA_DIR = "TRAINCHART_DATA_DIR"
"""The variable of the volume `data`."""
LOG_FOLDER = f"$({contract.TENSORBOARD_DIR})"
DATA, LOGS, CHECKPOINTS, OUTPUT = "data", "logs", "checkpoints", "output"
_PLACES = {"dir", "dirs", "directory", "folder", "path", "root", "file", "filename", "prefix", "location", "fn"}
_FILES = {"file", "filename", "path", "prefix", "fn", "location"}
_ONLY_FILES = _FILES - {"path", "location"}
"""A path may be one of a folder."""
_WRITTEN = {"output", "out", "export", "save"}
"""First words of what the program writes: --output_data_dir is no folder of data."""
_NOUNS = {
    DATA: "data dataset datasets input inputs val valid validation test eval tfrecord tfrecords record "
    "records corpus image images img imagenet mnist cifar cifar10 coco",
    LOGS: "log logs logging summary summaries tensorboard tb board event events trace traces profile profiler",
    CHECKPOINTS: "checkpoint checkpoints ckpt ckpts chkpt train training model models save saved saver snapshot "
    "snapshots backup job weights weight",
    OUTPUT: "output outputs out export exports exported export result results work experiment exp run "
    "runs artifact artifacts sample samples plot plots figure figures fig prediction predictions pred metrics "
    "metric history report serving savedmodel working",
}
_KINDS = {noun: kind for kind, nouns in _NOUNS.items() for noun in nouns.split()}
_ALONE = {
    "output",
    "outputs",
    "out",
    "export",
    "logs",
    "checkpoints",
    "save_to",
    "save",
    "checkpoint",
    "ckpt",
    "log",
    "results",
}
_SOURCES = {
    "resume",
    "restore",
    "pretrained",
    "init",
    "initial",
    "load",
    "from",
    "start",
    "old",
    "teacher",
    "vocab",
    "config",
}
_SAGEMAKER = {"SM_CHANNEL": DATA, "SM_MODEL_DIR": CHECKPOINTS, "SM_OUTPUT": OUTPUT}
"""Variables of SageMaker's containers that name folders. A channel is one of several folders of data."""
_CHANNEL = "SM_CHANNEL_"
_KERAS_FILES = ("mnist.npz", "imdb.npz", "reuters.npz", "boston_housing.npz", "california_housing.npz")
"""What keras.datasets downloads into its own folder, and takes the name of: no file of the user's."""
_MADE = re.compile(
    r"\b(synthetic|fake|dummy|random(ly)?([ -]generated)?) (data|images|inputs|examples|samples)", re.IGNORECASE
)


def is_secret(option: str) -> bool:
    """Tell whether a flag carries a secret: --password, --hub-token, --api_key; not --pad_token."""
    return names_secret(split_words(option))


def folder_kind(declaration: Declaration) -> str:
    """Return what a flag's folder or file holds; empty where it names none, or one that is only read."""
    if declaration.kind != "string" or not declaration.option.startswith("-") or declaration.default in _KERAS_FILES:
        return ""
    named = next((kind for prefix, kind in _SAGEMAKER.items() if declaration.variable.startswith(prefix)), "")
    if named:
        return named
    words = [part for word in split_words(declaration.option) for part in _parts(word)]
    if _SOURCES & set(words):
        return ""
    if words[-1] not in _PLACES:
        is_output = "_".join(words) in _ALONE and (
            words[0] in ("output", "out", "export") or is_path(declaration.default)
        )
        is_data = words in (["data"], ["dataset"], ["input"]) and is_path(declaration.default)
        return DATA if is_data else _KINDS.get(words[0], OUTPUT) if is_output else ""
    nouns = [word for word in words if word in _KINDS]
    if words == words[-1:]:
        # A flag that is called --dir says by its default what is there.
        nouns = [word for word in split_words(PurePosixPath(str(declaration.default or "")).stem) if word in _KINDS]
    kind = _KINDS[nouns[-1]] if nouns else ""
    if words[0] in _WRITTEN:
        kind = OUTPUT
    elif any(_KINDS[noun] == DATA for noun in nouns) and kind != OUTPUT:
        kind = DATA
    # A file without a name is an optional one, or has to be named; a folder does not stand in for it.
    is_file = words[-1] in _FILES if kind == CHECKPOINTS else words[-1] in _ONLY_FILES
    return "" if is_file and not declaration.default else kind


def folder_kinds(declarations: Sequence[Declaration]) -> list[str]:
    """Return what the folder or file of each flag of a program holds, as `folder_kind` does for one.

    With --val_dir beside it, --train_dir is where examples are, not where checkpoints go. An --eval_dir says so only
    where no other flag is for the data: many programs write the results of evaluations there.
    """
    kinds = [folder_kind(declaration) for declaration in declarations]
    names = [to_camel_case(declaration.option) for declaration in declarations]
    has_data = any(kind == DATA and name != "evalDir" for kind, name in zip(kinds, names, strict=True))
    has_parts = bool({"valDir", "validationDir", "testDir"} & set(names)) or ("evalDir" in names and not has_data)
    parts = {"trainDir": DATA} if has_parts else {"evalDir": OUTPUT}
    return [parts.get(name, kind) if kind else "" for kind, name in zip(kinds, names, strict=True)]


def makes_data(declaration: Declaration, description: str) -> bool:
    """Tell whether a program without this folder of data makes data itself, by the help of the flag."""
    return not declaration.default and bool(_MADE.search(description))


def fill_folder(declaration: Declaration, kind: str, given: Collection[str]) -> str:
    """Return what the command gives the flag; `given` is what it gives to those before."""
    if declaration.variable.startswith(_CHANNEL):
        return f"$({DATA_DIR})/{declaration.variable.removeprefix(_CHANNEL).lower()}"
    if kind == DATA:
        return f"$({DATA_DIR})" + _file_name(declaration)
    if kind == LOGS:
        return LOG_FOLDER + _file_name(declaration)
    folder = f"$({contract.CHECKPOINTS_DIR})" + _file_name(declaration)
    # Several outputs get a folder each, so that none overwrites the other's files.
    return folder if folder not in given else f"$({contract.CHECKPOINTS_DIR})/{declaration.option.strip('-')}"


def is_path(default: object) -> bool:
    """Tell whether a default is, or reads as, a folder or file of this machine."""
    if isinstance(default, PurePath):
        return default != PurePath()
    if not isinstance(default, str) or "://" in default or set(default) & set("<>|*?"):
        return False
    return "/" in default.strip("/ ") or default[:1] in ("/", "~") or default[:2] == "./"


def _file_name(declaration: Declaration) -> str:
    """Return "/model.h5" for a default such as out/model.h5, and nothing for a folder."""
    path = PurePosixPath(str(declaration.default or ""))
    is_file = (path.suffix != "" and not path.name.startswith(".")) or split_words(declaration.option)[-1] == "prefix"
    return f"/{path.name}" if is_file and path.name else ""


def _parts(word: str) -> tuple[str, ...]:
    """Return log and dir for logdir."""
    for place in ("directory", "folder", "path", "file", "dir"):
        if word.endswith(place) and word != place and word.removesuffix(place) in _KINDS:
            return word.removesuffix(place), place
    return (word,)
