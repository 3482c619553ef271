"""What a terminal shows of a local run: the lines of the pods, and the table below them."""

from __future__ import annotations

import io
import os
from types import SimpleNamespace
from typing import cast

import pytest
from rich.console import Console
from rich.live import Live

from trainchart.cli.run_display import (
    FOLDED,
    DisplayOptions,
    LineChoice,
    Lines,
    LiveTable,
    choose_display,
    read_line,
    show_curve,
)
from trainchart.cli.run_table import Outlook, describe_step, draw_run
from trainchart.errors import ToolError
from trainchart.local.observer import PodSnapshot, RunSnapshot
from trainchart.local.plan import LocalPlan
from trainchart.reports.curves import Curve

NOISE = "I0000 00:00:1795582067.004057    8272 cpu_feature_guard.cc:227] This TensorFlow binary is optimized"


def pod(label: str, state: str = "running") -> PodSnapshot:
    return PodSnapshot(label, label.rpartition("-")[0], state, 2, 12000, 8123.4, 96.0, 734.2, 0.12345)


def snapshot(*pods: PodSnapshot, step: int | None = 400) -> RunSnapshot:
    return RunSnapshot("training", 61.0, step, pods or (pod("chief-0"), pod("evaluator-0")))


def drawn(run: RunSnapshot, outlook: Outlook | None, width: int = 80, height: int = 24) -> list[str]:
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(draw_run(run, outlook, width, height))
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_table_has_progress_and_a_row_per_pod() -> None:
    first, heading, _, row = drawn(snapshot(), Outlook(1000, 75.0))
    assert first.startswith("training, 1 min ━━━")
    assert first.endswith("400/1,000 steps, 40%, 1 min left")
    assert heading.split("  ")[0] == "pod"
    assert row.split() == ["evaluator-0", "running", "2", "12,000", "0.1235", "8,123", "96", "734"]


@pytest.mark.parametrize("width", range(20, 121, 7))
def test_table_fits_every_width_and_keeps_the_step(width: int) -> None:
    lines = drawn(snapshot(), Outlook(1000, 75.0), width)
    heading = next(line for line in lines if line.startswith("pod"))
    assert all(len(line) <= width for line in lines)
    assert ("MiB" in heading) == (width >= 70)
    assert ("step" in heading) == (width >= 32)
    assert width < 41 or "40%, 1 min left" in "".join(lines)


def test_many_pods_take_half_the_terminal_trouble_first() -> None:
    pods = [pod(f"worker-{index}", "restarting" if index == 37 else "running") for index in range(40)]
    lines = drawn(snapshot(*pods), None, height=24)
    assert len(lines) <= 12
    assert any(line.startswith("worker-37") for line in lines)
    assert lines[-1] == "… and 32 more running"


@pytest.mark.parametrize(
    ("step", "outlook", "words"),
    [
        (None, None, ""),
        (None, Outlook(100, None), ""),
        (1200, None, "step 1,200"),
        (50, Outlook(100, None), "50/100 steps, 50%"),
        (50, Outlook(100, 5.0), "50/100 steps, 50%, 5 s left"),
        (100, Outlook(100, 0.0), "100/100 steps, 100%"),
        (130, Outlook(100, 0.0), "130/100 steps, 100%"),
    ],
)
def test_step_is_described_as_far_as_it_is_known(step: int | None, outlook: Outlook | None, words: str) -> None:
    assert describe_step(snapshot(step=step), outlook) == words


def test_tensorflow_lines_are_folded_into_one() -> None:
    choice = LineChoice(DisplayOptions())
    assert list(choice.choose("worker-0", [NOISE, NOISE, "step 1", NOISE])) == [FOLDED, "step 1"]
    assert list(choice.choose("worker-1", [NOISE, "hello"])) == ["hello"]


def test_verbose_shows_every_line() -> None:
    assert list(LineChoice(DisplayOptions(verbose=True)).choose("worker-0", [NOISE, "x"])) == [NOISE, "x"]


def test_only_takes_roles_and_pods() -> None:
    choice = LineChoice(DisplayOptions(only=("worker", "ps-1")))
    shown = [
        label for label in ("chief-0", "worker-0", "worker-12", "ps-0", "ps-1") if list(choice.choose(label, ["x"]))
    ]
    assert shown == ["worker-0", "worker-12", "ps-1"]


def test_program_line_keeps_colours_but_no_terminal_commands() -> None:
    text = read_line("\x1b[31mred\x1b[0m \x1b[2J\x1b[1A\x1b]0;title\x07\x07\x08done")
    assert text.plain == "red done"
    assert str(text.spans[0].style) == "color(1)"


def test_terminal_shows_lines_above_the_table() -> None:
    console = Console(width=80, height=24, file=io.StringIO(), force_terminal=True, record=True, color_system=None)
    with Live(console=console, auto_refresh=False) as live:
        display = LiveTable(console, live, LineChoice(DisplayOptions()))
        display.show_lines("worker-0", ["one " + "x" * 99, NOISE])
        display.show_event("worker-0 has finished")
        display.show_snapshot(snapshot())
    text = console.export_text()
    assert "[worker-0] one " + "x" * 99 in text
    assert text.index("[worker-0]") < text.index(FOLDED) < text.index("* worker-0 has finished") < text.index("chief-0")


def test_only_names_what_the_run_has() -> None:
    pods = [SimpleNamespace(label=label, role=label[:-2]) for label in ("chief-0", "worker-0", "worker-1")]
    plan = cast(LocalPlan, SimpleNamespace(pods=pods))
    LineChoice(DisplayOptions(only=("worker", "chief-0"))).check(plan)
    with pytest.raises(ToolError, match="--only wroker") as caught:
        LineChoice(DisplayOptions(only=("wroker",))).check(plan)
    assert caught.value.hint == "roles: chief, worker; pods: chief-0, worker-0, worker-1"


def test_lines_have_the_pod_before_them(capsys: pytest.CaptureFixture[str]) -> None:
    display = Lines(LineChoice(DisplayOptions()))
    display.show_lines("worker-0", ["one", "two"])
    display.show_snapshot(snapshot())
    assert capsys.readouterr().err.splitlines()[:2] == ["[worker-0] one", "[worker-0] two"]


def test_colours_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for color, is_off in ((False, True), (True, False)):
        with choose_display(DisplayOptions(color=color)) as display:
            assert isinstance(display, LiveTable)
            assert display._console.no_color is is_off


def test_curve_is_for_terminals_only(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    curves = (Curve("loss", (1, 9), (1.0, 0.5)),)
    show_curve(curves, 9)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("os.get_terminal_size", lambda number: os.terminal_size((60, 20)))
    monkeypatch.setattr("sys.stderr.fileno", lambda: 2, raising=False)
    show_curve((Curve("accuracy", (1, 9), (1.0, 0.5)),), 9)
    assert capsys.readouterr().err == ""
    show_curve(curves, 9)
    assert capsys.readouterr().err.startswith("loss by step\n   1 ┤─")
    monkeypatch.setenv("TERM", "dumb")
    show_curve(curves, 9)
    assert capsys.readouterr().err.isascii()
