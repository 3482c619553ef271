"""Find the exceptions that ended a Python program, with the reasons that TensorFlow and Keras print below them."""

from __future__ import annotations

import itertools
import re
from typing import Iterable, List, Sequence, Tuple

_COMPLETED = 20
"""Exceptions of a chain, from the last, whose reasons are looked for, and how deep each: no one reads more."""
_TRACEBACK = re.compile(r"^\W*(Exception Group )?Traceback \(most recent call last\):")
_NOISE = re.compile(r"^(Exception ignored |Exception in thread |Error in atexit)")
_DIRECT_CAUSE = "The above exception was the direct cause of the following exception:"
_CHAINED = (_DIRECT_CAUSE, "During handling of the above exception, another exception occurred:")
_EXCEPTION = re.compile(r"^(?:  \| )?([A-Za-z_][\w.]*)(?:: .*|:)?$")
_SYNTAX = re.compile(r"^(SyntaxError|IndentationError|TabError): ")
_PLACE = re.compile(r'^\s*(?:\| )?File "([^"]+)", line (\d+)$')
_VAGUE = "Graph execution error:"
"""TensorFlow's exceptions begin so, whatever went wrong: the reason stands below where in the graph it happened."""
_HEADING = re.compile(r"\bFrom /job:\S+:$|\d{1,6} root error\(s\) found\.$")
"""An error in another task, or several: the reason stands in the next line."""
_TRACED = ": in user code:"
"""The exception inside a tf.function or a step of Keras stands below, indented, behind the places that led to it."""
_INNER = re.compile(r"^    [A-Za-z_][\w.]*: ")
_CALLING = re.compile(r": Exception encountered when calling [^:]*\.$")
"""Keras names the layer in the line, and the reason in the next one that is not empty."""
_RPC = re.compile(r"<\w+ of RPC that terminated with:$")
_RPC_FIELD = re.compile(r'^\s+(?:status = StatusCode\.(\w+)|details = "([^"].*?)"?)$')
"""gRPC prints its status and the server's words in the two lines below."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_WHERE = re.compile(r"Detected at |Node: |<stack traces unavailable>|File |\d+ root error|=+$|\[\[|Traceback ")


def find_errors(lines: Sequence[str]) -> List[str]:
    """Return the exception lines of the traceback that ended a Python program, the last of a chain first."""
    chain = _find_chain(lines)
    last = [_complete(error, lines, number) for number, error in chain[: -_COMPLETED - 1 : -1]]
    return last + [error for _, error in chain[-_COMPLETED - 1 :: -1]]


def find_root(lines: Sequence[str]) -> str:
    """Return the exception line from which a program explicitly raised the last one (`raise ... from`); "" if none.

    What was raised while another exception was handled says less of that one: it may be a failed cleanup.
    """
    chain = _find_chain(lines)[-_COMPLETED:]
    root = len(chain) - 1
    while root > 0:
        between = lines[chain[root - 1][0] : chain[root][0]]
        if [line for line in between if line in _CHAINED] != [_DIRECT_CAUSE]:
            break
        root -= 1
    return _complete(chain[root][1], lines, chain[root][0]) if 0 <= root < len(chain) - 1 else ""


def _find_chain(lines: Sequence[str]) -> List[Tuple[int, str]]:
    """Return (number, exception line) of the chain of tracebacks that ended the program, in printed order."""
    chains = _find_chains(lines)
    for noise in (False, True):
        # A destructor or a background thread may print a traceback after the one that matters.
        for is_noise, chain in reversed(chains):
            if is_noise == noise and chain:
                return chain
    return []


def _find_chains(lines: Sequence[str]) -> List[Tuple[bool, List[Tuple[int, str]]]]:
    """Return (is noise, (number, exception line) in printed order) of every chain of tracebacks."""
    chains: List[Tuple[bool, List[Tuple[int, str]]]] = []
    inside = linked = False
    before = ""
    for number, line in enumerate(lines):
        if _TRACEBACK.match(line):
            if not linked:
                chains.append((bool(_NOISE.match(before)), []))
            inside, linked = True, False
        elif _SYNTAX.match(line):
            # A syntax error in the program itself has no "Traceback" heading.
            if not inside:
                chains.append((False, []))
            chains[-1][1].append((number, _locate(line, lines[max(0, number - 6) : number])))
            inside = False
        elif inside and _EXCEPTION.match(line):
            chains[-1][1].append((number, line.replace("  | ", "")))
            inside = False
        elif line in _CHAINED:
            linked = bool(chains)
        before = line or before
    return chains


def _locate(error: str, above: Sequence[str]) -> str:
    """Return the line of a syntax error with the file and line that Python names above it."""
    place = next((found for line in reversed(above) for found in [_PLACE.match(line)] if found), None)
    return f"{error} ({place.group(1)}, line {place.group(2)})" if place else error


def _complete(error: str, lines: Sequence[str], number: int) -> str:
    """Return the exception line `error`, with the reason from below its `number` where TensorFlow or Keras put it."""
    for _ in range(_COMPLETED):
        if not error.endswith(_TRACED):
            break
        inner = next((below for below in range(number + 1, len(lines)) if _INNER.match(lines[below])), None)
        if inner is None:
            break
        number, error = inner, lines[inner].strip()
    below = itertools.islice(lines, number + 1, None)
    if _RPC.search(error):
        fields = [field for line in itertools.islice(below, 2) for field in [_RPC_FIELD.match(line)] if field]
        words = ": ".join(field.group(1) or field.group(2) for field in fields)
        return f"{error.partition(':')[0]}: {words}" if words else error
    if _CALLING.search(error):
        plain = (_COLOURS.sub("", line).strip() for line in below)
        reason = next((line for line in plain if line), "")
        return f"{error.partition(':')[0]}: {reason}" if reason else error
    if error.endswith(_VAGUE):
        return error[: -len(_VAGUE)] + (_find_reason(below) or _VAGUE)
    if _HEADING.search(error):
        return f"{error} {_find_reason(below)}".strip()
    after = next(below, "") if error.endswith(":") and not error.endswith(_TRACED) else ""
    return f"{error} {after.strip()}" if after[:1] in ("\t", " ") and after.strip() else error


def _find_reason(below: Iterable[str]) -> str:
    """Return the first line of TensorFlow's that does not say where something happened."""
    lines = (line.strip().replace("(0) ", "", 1) for line in below)
    reasons = (line for line in lines if line and not _WHERE.match(line))
    reason = next(reasons, "")
    return f"{reason} {next(reasons, '')}".strip() if _HEADING.search(reason) else reason
