"""Flags that name a folder or file: outputs go into the run's volumes, data comes from one. Secrets stay out. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from trainchart.scaffold.flag import Declaration, split_words, to_camel_case
from trainchart_runtime import contract

DATA_DIR = "TRAINCHART_DATA_DIR"
"""The variable of the volume `data`."""
LOG_FOLDER = f"$({contract.TENSORBOARD_DIR})"
DATA, LOGS, CHECKPOINTS, OUTPUT, TEMPORARY = "data", "logs", "checkpoints", "output", "temporary"
_PLACES = {"dir", "dirs", "directory", "folder", "path", "root", "file", "filename", "prefix", "location", "fn"}
_FILES = {"file", "filename", "path", "prefix", "fn", "location"}
_ONLY_FILES = _FILES - {"path", "location"}
"""A path may be one of a folder."""
_ONLY_FOLDERS = {"dir", "dirs", "directory", "folder", "root"}
_WRITTEN = {"output", "out", "export", "save"}
"""First words of what the program writes: --output_data_dir is no folder of data."""
_NOUNS = {
    DATA: "data dataset datasets input inputs val valid validation test eval tfrecord tfrecords record "
    "records corpus image images img imagenet mnist cifar cifar10 coco",
    LOGS: "log logs logging summary summaries tensorboard tb board event events trace traces profile profiles "
    "profiler profiling",
    CHECKPOINTS: "checkpoint checkpoints ckpt ckpts chkpt train training model models save saved saver snapshot "
    "snapshots backup job weights weight saves saveto saving",
    OUTPUT: "output outputs out export exports exported export result results work experiment exp run "
    "runs artifact artifacts sample samples plot plots figure figures fig prediction predictions pred metrics "
    "metric history report reports serving savedmodel working cache caches dump dumps storage workspace workdir "
    "workspaces evaluation evaluations visualization visualizations vis stats statistics submission submissions "
    "recordings generated dest destination",
    TEMPORARY: "tmp temp temporary scratch",
}
_KINDS = {noun: kind for kind, nouns in _NOUNS.items() for noun in nouns.split()}
_ALONE = {
    *("output", "outputs", "out", "export", "exports", "log", "logs", "checkpoint", "checkpoints", "ckpt", "ckpts"),
    *("save", "saves", "save_to", "saveto", "result", "results", "artifact", "artifacts", "snapshot", "snapshots"),
    *("summaries", "tensorboard", "cache", "workdir", "workspace", "dest", "destination", "runs", "models", "plots"),
    *("figures", "predictions", "samples", "reports", "experiments", "recordings", "dumps", "submissions"),
}
"""Names of folders that do not end in dir or path."""
_LINKS = {"to", "saved", "best", "final"}
"""Words beside nouns in the name of an output: --save_model_to."""
_PROFILES = {"profile", "profiles", "profiler", "profiling", "trace", "traces"}
SPLITS = {"data", "dataset", "datasets", "input", "inputs", "train", "training", "val", "valid", "validation", "test"}
_MAYBE_READ = {"model", "weights", "weight"}
"""What a program reads as often as it writes it."""
_FOLDER = re.compile(r"\b(director(y|ies)|folders?)\b", re.IGNORECASE)
_SAVES = re.compile(
    r"\b(saves?|saving|(is|are|be|gets?) (saved|stored|written)|(saved|stored) (to|in|into|under|at|here)"
    r"|writ(e|es|ten|ing)|stor(e|es|ing)|exports?|dumps?|puts?|go|goes|outputs?)\b",
    re.IGNORECASE,
)
_READS = re.compile(
    r"\b(resum\w*|restor\w*|load\w*|read\w*|pre-?trained|initiali[sz]\w*|warm.?start\w*|fine.?tun\w*|continu\w*)\b",
    re.IGNORECASE,
)
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
KERAS_MODULES = (
    *("mnist", "fashion_mnist", "cifar10", "cifar100", "imdb", "reuters", "boston_housing", "california_housing"),
)
_FILE = re.compile(
    r"[\w. -]+\.(h5|hdf5|keras|ckpt|pb|tflite|csv|tsv|jsonl?|ya?ml|txt|log|np[yz]|pkl|pickle|tfrecords?|png|jpe?g|pdf)"
)
_MADE = re.compile(
    r"\b(synthetic|fake|dummy|random(ly)?([ -]generated)?) (data|images|inputs|examples|samples)", re.IGNORECASE
)


def names_profile(option: str) -> bool:
    """Tell whether a flag is for profiles, which go beside other logs."""
    return not _PROFILES.isdisjoint(split_words(option))


def folder_kind(declaration: Declaration) -> str:
    """Return what a flag's folder or file holds; empty where it names none, or one that is only read."""
    if declaration.kind != "string" or not declaration.option.startswith("-") or _is_of_keras(declaration):
        return ""
    if declaration.default == "-" or (declaration.is_file and not declaration.default):
        return ""
    named = next((kind for prefix, kind in _SAGEMAKER.items() if declaration.variable.startswith(prefix)), "")
    if named:
        return named
    words = [part for word in split_words(declaration.option) for part in _parts(word)]
    if _SOURCES & set(words) or declaration.choices or _is_read(declaration):
        return ""
    if any(_KINDS.get(word) == TEMPORARY for word in words):
        return TEMPORARY if _is_moved(declaration, words) else ""
    if words[-1] not in _PLACES:
        return _kind_alone(declaration, words)
    nouns = [word for word in words if word in _KINDS]
    if words == words[-1:]:
        # A flag that is called --dir says by its default what is there.
        nouns = [word for word in split_words(PurePosixPath(str(declaration.default or "")).stem) if word in _KINDS]
    kind = _KINDS[nouns[-1]] if nouns else OUTPUT if _SAVES.search(declaration.help_text) else ""
    if words[0] in _WRITTEN or (set(nouns) == {"eval"} and _SAVES.search(declaration.help_text)):
        kind = OUTPUT
    elif set(nouns) <= {"train", "training"} and words[-1] in _FILES and nouns:
        kind = DATA  # Only folders for checkpoints are called so: --train_dir.
    elif any(_KINDS[noun] == DATA for noun in nouns) and kind != OUTPUT:
        kind = DATA
    # A file without a name is an optional one, or has to be named; a folder does not stand in for it.
    is_file = words[-1] in _FILES if kind == CHECKPOINTS else words[-1] in _ONLY_FILES
    is_file = is_file and not _FOLDER.search(declaration.help_text)
    return "" if (is_file or "cache" in words) and not declaration.default else kind


def _is_moved(declaration: Declaration, words: list[str]) -> bool:
    """Tell whether a flag for temporary files has another folder than /tmp, which is each pod's own."""
    is_folder = words[-1] in _PLACES - _ONLY_FILES or words in (["tmp"], ["scratch"])
    is_set = bool(declaration.default) or declaration.is_required
    return (
        is_folder
        and is_set
        and PurePosixPath("/tmp") not in (path := PurePosixPath(str(declaration.default)), *path.parents)
    )


def _is_of_keras(declaration: Declaration) -> bool:
    """Tell whether a flag names a file that keras.datasets downloads or, as --data may, one of its modules."""
    is_module = declaration.default in KERAS_MODULES and SPLITS.issuperset(split_words(declaration.option))
    return declaration.is_download or is_module or declaration.default in _KERAS_FILES


def _kind_alone(declaration: Declaration, words: list[str]) -> str:
    """Return what a flag holds whose name has no word for a folder, but whose default, type or help may say it."""
    name = "_".join(words)
    if name in ("saved_model", "savedmodel") or (name in _ALONE and words[0] in ("output", "outputs", "out", "export")):
        return OUTPUT
    if set(words) <= SPLITS:
        return DATA if _says_path(declaration) else ""
    nouns = [word for word in words if word in _KINDS]
    if not nouns or set(words) - _KINDS.keys() - _LINKS or any(_KINDS[noun] == DATA for noun in nouns):
        return ""
    is_output = (
        _says_path(declaration)
        or _is_named_file(declaration, words)
        or ({*words[:1], name, *words[-1:]} & _ALONE and _is_folder(declaration))
    )
    if set(words) <= _MAYBE_READ:
        is_output = is_output and bool(_SAVES.search(declaration.help_text))
    is_cache = "cache" in words and not declaration.default
    return "" if is_cache or not is_output else LOGS if _KINDS[nouns[0]] == LOGS else _KINDS[nouns[-1]]


def _says_path(declaration: Declaration) -> bool:
    """Tell whether the type, the default or the help of a flag says that it is a path."""
    default, text = declaration.default, declaration.help_text
    is_told = bool(_FOLDER.search(text)) or (not default and bool(re.search(r"\bpaths?\b", text, re.IGNORECASE)))
    is_plain = not default or (isinstance(default, str) and " " not in default)
    return declaration.is_path or is_path(default) or (is_told and is_plain)


def _is_folder(declaration: Declaration) -> bool:
    """Tell whether the default of a flag is a word for a folder of outputs: results, ckpt_v1, results.json."""
    return not _ALONE.isdisjoint(split_words(str(declaration.default or "")))


def _is_named_file(declaration: Declaration, words: list[str]) -> bool:
    """Tell whether the default of a flag is a file of its name: metrics.json."""
    path = PurePosixPath(str(declaration.default or ""))
    return bool(path.suffix[1:].isalnum() and not set(words).isdisjoint(split_words(path.stem)))


def _is_read(declaration: Declaration) -> bool:
    """Tell whether the help says of a flag without a folder's name that it is only read."""
    is_folder = bool(declaration.default) and not PurePosixPath(str(declaration.default)).suffix
    text = declaration.help_text
    return bool(_READS.search(text)) and not _SAVES.search(text) and not is_folder


def folder_kinds(declarations: Sequence[Declaration]) -> list[str]:
    """Return what the folder or file of each flag of a program holds, as `folder_kind` does for one.

    With --val_dir beside it, --train_dir is where examples are, not where checkpoints go. An --eval_dir says so only
    where no other flag is for the data: many programs write the results of evaluations there.
    """
    kinds = [folder_kind(declaration) for declaration in declarations]
    names = [to_camel_case(declaration.option) for declaration in declarations]
    has_data = any(kind == DATA and name != "evalDir" for kind, name in zip(kinds, names, strict=True))
    is_split = ("evalDir", DATA) in zip(names, kinds, strict=True) and not has_data
    has_parts = bool({"valDir", "validationDir", "testDir"} & set(names)) or is_split
    parts = {"trainDir": DATA} if has_parts else {"evalDir": OUTPUT}
    return [parts.get(name, kind) if kind else "" for kind, name in zip(kinds, names, strict=True)]


def makes_data(declaration: Declaration) -> bool:
    """Tell whether a program without this folder of data makes data itself, by the help of the flag."""
    return not declaration.default and bool(_MADE.search(declaration.help_text))


def fill_folder(declaration: Declaration, kind: str, given: Collection[str]) -> str:
    """Return what the command gives the flag; `given` is what it gives to those before."""
    if declaration.variable.startswith(_CHANNEL):
        return f"$({DATA_DIR})/{declaration.variable.removeprefix(_CHANNEL).lower()}"
    if kind == DATA:
        return f"$({DATA_DIR})" + _file_name(declaration)
    if kind == LOGS:
        return LOG_FOLDER + _file_name(declaration)
    if kind == TEMPORARY:
        return f"/tmp/{declaration.option.strip('-')}-$({contract.POD_NAME})"
    if "cache" in split_words(declaration.option):
        # No two pods may write the same cache of tf.data.
        return f"$({contract.CHECKPOINTS_DIR})/{declaration.option.strip('-')}-$({contract.POD_NAME})"
    folder = f"$({contract.CHECKPOINTS_DIR})" + _file_name(declaration)
    # Several outputs get a folder each, so that none overwrites the other's files.
    return folder if folder not in given else f"$({contract.CHECKPOINTS_DIR})/{declaration.option.strip('-')}"


def is_path(default: object) -> bool:
    """Tell whether a default is, or reads as, a folder or file of this machine."""
    if isinstance(default, PurePosixPath):
        return default != PurePosixPath()
    if not isinstance(default, str) or "://" in default or set(default) & set("<>|*?"):
        return False
    return "/" in default.strip("/ ") or default[:1] in ("/", "~") or default[:2] == "./"


def names_folder(declaration: Declaration) -> bool:
    """Tell whether the default of a flag is a path, by itself, by the type of the flag or by its name."""
    default = declaration.default
    if _is_of_keras(declaration):
        return False
    if _FILE.fullmatch(str(default)):
        return declaration.kind == "string"
    if str(default).startswith("/tmp") and not {"tmp", "temp", "scratch"}.isdisjoint(split_words(declaration.option)):
        return False  # A pod may write there.
    is_named = declaration.is_path or _parts(split_words(declaration.option)[-1])[-1] in _ONLY_FOLDERS
    return declaration.kind == "string" and (
        is_path(default) or (is_named and isinstance(default, str) and default != "")
    )


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
