"""The program's output passes unchanged, however much and of whatever kind, and its last lines are remembered."""

from __future__ import annotations

import hashlib
import subprocess
import threading

import pytest

from trainchart_launcher.pump import TAIL_BYTES, LineFeed, Tail
from trainchart_runtime import contract


def test_binary_output_without_newline_is_passed_unchanged(pod):
    process = pod.start("import os; os.write(1, bytes(range(256)) * 3); os.write(2, b'\\xff\\x00')")
    stdout, stderr = process.communicate(timeout=60)
    assert stdout == bytes(range(256)) * 3
    assert b"\xff\x00" in stderr


def test_lines_of_the_launcher_begin_behind_an_unended_one(pod):
    process = pod.start("import os, sys; os.write(2, b'half a line'); sys.exit(3)")
    _, stderr = process.communicate(timeout=60)
    assert b"half a line\ntrainchart-launcher: " in stderr


def test_an_attempt_begins_no_line_in_the_middle(make_pod):
    pod = make_pod(variables={contract.MAX_RESTARTS: "1"})
    program = "import os, sys; os.write(1, b'begin %d' % os.path.exists('again')); open('again', 'w'); sys.exit(3)"
    stdout, _ = pod.start(program).communicate(timeout=60)
    assert stdout == b"begin 0\nbegin 1"


def test_huge_output_arrives_whole_and_in_order(pod):
    program = (
        "import os\n"
        "for number in range(40):\n"
        "    block = bytes([number]) * 1000003\n"
        "    while block: block = block[os.write(1, block):]\n"
    )
    process = pod.start(program, stderr=subprocess.DEVNULL)
    found = hashlib.sha256()
    while chunk := process.stdout.read(1 << 20):
        found.update(chunk)
    assert process.wait(10) == 0
    assert found.digest() == hashlib.sha256(b"".join(bytes([n]) * 1000003 for n in range(40))).digest()


def test_the_last_words_survive_a_flood(pod):
    process = pod.start("for number in range(200000): print('step', number)\nraise ValueError('after the flood')")
    reader = threading.Thread(target=process.stdout.read)
    reader.start()
    stderr = process.stderr.read()
    reader.join()
    assert process.wait(10) == 1
    assert b"ValueError: after the flood" in stderr
    assert pod.message.error == "ValueError: after the flood"
    assert len(pod.message.lines) == 20


def test_log_without_a_reader_does_not_stop_the_training(pod):
    process = pod.start(
        "import time\nfor n in range(200): print('x' * 10000, flush=True)\nopen('end', 'w').write('reached')"
    )
    process.stdout.close()
    assert process.wait(10) == 0
    assert pod.wait_for_file("end") == "reached"
    assert pod.message.succeeded


def test_stranger_with_an_open_pipe_does_not_keep_the_launcher(pod):
    program = (
        "import os, subprocess, sys\n"
        "stranger = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True)\n"
        "open('stranger', 'w').write(str(stranger.pid))\n"
        "print('last words', flush=True)\n"
    )
    process = pod.start(program)
    assert process.wait(15) == 0
    pod.kill(int((pod.folder / "stranger").read_text()))
    assert pod.message.lines == ("last words",)


@pytest.mark.parametrize("pause", [0.002, 0.05])
def test_stranger_that_prints_a_little_does_not_keep_launcher(pod, pause):
    drip = f"import time\nwhile True: print('x', end='', flush=True); time.sleep({pause})"
    process = pod.start(
        "import subprocess, sys\n"
        f"stranger = subprocess.Popen([sys.executable, '-c', {drip!r}], start_new_session=True)\n"
        "open('stranger', 'w').write(str(stranger.pid))\n"
        "raise ValueError('the last words')"
    )
    try:
        _, stderr = process.communicate(timeout=60)
        assert b"ValueError: the last words" in stderr
    finally:
        pod.kill(int(pod.wait_for_file("stranger")))


def test_endless_printing_stranger_does_not_keep_the_launcher(pod):
    program = (
        "import os, subprocess, sys, time\n"
        'endless = \'open("prints", "w").close()\\nwhile True: print(9999 * "x", flush=True)\'\n'
        "stranger = subprocess.Popen([sys.executable, '-c', endless], start_new_session=True)\n"
        "open('stranger', 'w').write(str(stranger.pid))\n"
        "while not os.path.exists('prints'): time.sleep(0.01)\n"
    )
    process = pod.start(program)
    try:
        process.communicate(timeout=30)
        assert process.returncode == 0
    finally:
        pod.kill(int(pod.wait_for_file("stranger")))


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        (b"", []),
        (b"one\ntwo", ["one", "two"]),
        (b"one\n\ntwo\n", ["one", "", "two"]),
        (b"\x1b]52;c;ZWNobw==\x07a\x1b[2Jb\x00\x7f\n", ["ab"]),
        ("a\u202eb\u009b31mc\u2066\n".encode(), ["abc"]),
        (b"10%\r50%\r100%\n", ["100%"]),
        (b"100%\r", ["100%"]),
        (b"\x1b[31mred\x1b[0m\n\x1b]0;title\x07x\n", ["red", "x"]),
        ("größe\n".encode() + b"\xff\n", ["größe", "\ufffd"]),
    ],
)
def test_remembered_lines_are_what_a_reader_would_see(written, lines):
    tail = Tail()
    for start in range(0, len(written), 3):
        tail.add(written[start : start + 3])
    assert tail.lines() == lines


def test_a_tail_is_bounded_and_begins_with_a_whole_line():
    tail = Tail()
    for number in range(100000):
        tail.add(b"line %06d\n" % number)
    lines = tail.lines()
    assert lines[-1] == "line 099999"
    assert all(len(line) == 11 for line in lines)
    assert TAIL_BYTES - 24 <= sum(len(line) + 1 for line in lines) <= TAIL_BYTES


@pytest.mark.parametrize("pieces", [1, 1000])
def test_an_endless_line_pushes_nothing_out_and_keeps_both_ends(pieces):
    feed = LineFeed([tail := Tail()])
    feed.add(b"before\n")
    line = b"ValueError: " + b"x" * 1_500_000 + b" the end"
    size = len(line) // pieces + 1
    for start in range(0, len(line), size):
        feed.add(line[start : start + size])
    feed.end()
    first, *_, last = tail.lines()
    assert first == "before"
    assert tail.lines()[1].startswith("ValueError: xxx") and last.endswith("x the end")
    assert sum(map(len, tail.lines())) < TAIL_BYTES


def test_endless_line_that_overwrites_itself_keeps_last_words():
    feed = LineFeed([tail := Tail()])
    for percent in range(100_000):
        feed.add(b"%d%%\r" % percent)
    feed.add(b"\n")
    assert tail.lines() == ["99999%"]


def test_traceback_longer_than_the_tail_keeps_its_beginning():
    tail = Tail()
    tail.add(b'lost\nTraceback (most recent call last):\n  File "train.py", line 1\nValueError: bad\n')
    for number in range(10_000):
        tail.add(b"a line of the message, %d\n" % number)
    lines = tail.lines()
    assert lines[0] == "Traceback (most recent call last):" and "ValueError: bad" in lines
    assert lines[-1] == "a line of the message, 9999"


def test_what_was_overwritten_is_searched_and_not_shown():
    tail = Tail()
    tail.add(b"50%\rValueError: a\rb\x00\n")
    assert (tail.lines(), tail.pieces()) == (["b"], ["50%", "ValueError: a", "b"])
