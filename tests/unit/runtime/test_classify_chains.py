"""The error of a program whose last exception was raised from others."""

from __future__ import annotations

import traceback

import pytest

from trainchart_runtime.classify import ERROR_LIMIT, Ending, classify

DIRECT = "\n\nThe above exception was the direct cause of the following exception:\n\n"
DURING = "\n\nDuring handling of the above exception, another exception occurred:\n\n"
HEAD = 'Traceback (most recent call last):\n  File "/app/train.py", line 3, in <module>\n    main()\n'


def find_error(text: str) -> str:
    cause, error = classify(Ending(exit_code=1, lines=text.splitlines()))
    assert cause.name == "program-error"
    return error


@pytest.mark.parametrize(
    ("errors", "found"),
    [
        (
            ["ValueError: a.csv:4213: bad row", DIRECT, "E: stopped"],
            "E: stopped (from ValueError: a.csv:4213: bad row)",
        ),
        (["KeyError: 'a'", DIRECT, "B: b", DIRECT, "C: c"], "C: c (from KeyError: 'a')"),
        (["KeyError: 'a'", DURING, "B: b", DIRECT, "C: c"], "C: c (from B: b)"),
        (["KeyError: 'a'", DIRECT, "B: b", DURING, "C: c"], "C: c"),
        (["KeyError: 'a'", DURING, "B: b"], "B: b"),
        (["AssertionError", DIRECT, "B"], "B (from AssertionError)"),
        (["a.X: Graph execution error:\n\nDetected at node\ntoo hot", DIRECT, "B: b"], "B: b (from a.X: too hot)"),
        # Repeated words say nothing more.
        (["KeyError: 'a'", DIRECT, "B: cannot read: KeyError: 'a'"], "B: cannot read: KeyError: 'a'"),
        (["KeyError: 'a'", DIRECT, "B: cannot read 'a'"], "B: cannot read 'a'"),
    ],
)
def test_root_of_an_explicit_chain_is_named(errors: list[str], found: str) -> None:
    text = "".join(part if part in (DIRECT, DURING) else HEAD + part for part in errors)
    assert find_error(text) == found


def test_root_is_named_as_python_prints_it() -> None:
    try:
        try:
            raise ValueError("bad row")
        except ValueError as error:
            raise RuntimeError("stopped") from error
    except RuntimeError as error:
        text = "".join(traceback.format_exception(error))
    assert find_error(text) == "RuntimeError: stopped (from ValueError: bad row)"


def test_root_of_a_long_error_is_kept_without_credentials() -> None:
    root = f"ValueError: https://me:{'s3cret' * 40}@example.com " + 300 * "b"
    error = find_error(f"{HEAD}{root}{DIRECT}{HEAD}RuntimeError: {600 * 'c'}")
    assert len(error) == ERROR_LIMIT
    assert error.startswith("RuntimeError: ccc")
    assert "… (from ValueError: https://me:***@example.com bbb" in error
    assert error.endswith("b…)")
    assert "s3cret" not in error


def test_cause_of_a_chain_stays_with_its_own_error() -> None:
    text = f"{HEAD}OSError: [Errno 28] No space left on device{DIRECT}{HEAD}RuntimeError: cannot save"
    cause, error = classify(Ending(exit_code=1, lines=text.splitlines()))
    assert (cause.name, error) == ("disk-full", "OSError: [Errno 28] No space left on device")
