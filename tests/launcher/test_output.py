"""The program's output passes unchanged, however much and of whatever kind, and its last lines are remembered."""

from __future__ import annotations

import hashlib
import subprocess
import threading

import pytest

from trainchart_launcher.pump import TAIL_BYTES, Tail


def test_binary_output_without_newline_is_passed_unchanged(pod):
    process = pod.start("import os; os.write(1, bytes(range(256)) * 3); os.write(2, b'\\xff\\x00')")
    stdout, stderr = process.communicate(timeout=60)
    assert stdout == bytes(range(256)) * 3
    assert b"\xff\x00" in stderr


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


def test_a_log_that_nobody_reads_any_more_does_not_stop_the_training(pod):
    process = pod.start(
        "import time\nfor n in range(200): print('x' * 10000, flush=True)\nopen('end', 'w').write('reached')"
    )
    process.stdout.close()
    assert process.wait(10) == 0
    assert pod.wait_for_file("end") == "reached"
    assert pod.message.succeeded


def test_a_stranger_with_the_pipe_open_does_not_keep_the_launcher(pod):
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


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        (b"", []),
        (b"one\ntwo", ["one", "two"]),
        (b"one\n\ntwo\n", ["one", "", "two"]),
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


def test_one_endless_line_is_cut_from_the_left():
    tail = Tail()
    tail.add(b"a" * 10 + b"b" * 5 * TAIL_BYTES)
    assert tail.lines() == ["b" * TAIL_BYTES]
