"""Scalars by step: restarts that go back, bounds, names."""

from __future__ import annotations

from trainchart.reports.curves import CURVES_SHOWN, POINTS_SHOWN, Curve, Point, make_curves, make_point, thin


def make_points(steps: list[int], task: str = "chief-0", **values: float) -> list[Point]:
    return [Point(task, float(step), step, values or {"loss": float(step)}) for step in steps]


def test_steps_that_a_restart_repeats_count_once() -> None:
    points = [*make_points([10, 20, 30]), *make_points([20], loss=7.0)]
    assert make_curves(points, "chief-0") == (Curve("loss", (10, 20), (10.0, 7.0)),)


def test_scalars_of_other_tasks_have_their_name() -> None:
    points = [*make_points([10]), *make_points([10], "evaluator-0", accuracy=0.5)]
    assert [curve.name for curve in make_curves(points, "chief-0")] == ["loss", "evaluator-0 accuracy"]


def test_a_long_curve_is_thinned_to_its_newest_point() -> None:
    (curve,) = make_curves(make_points(list(range(10_001))), "chief-0")
    assert len(curve.steps) <= POINTS_SHOWN
    assert curve.steps[-1] == 10_000
    assert list(curve.steps) == sorted(curve.steps)


def test_the_number_of_curves_is_bounded_and_losses_come_first() -> None:
    values = {f"metric{number}": 1.0 for number in range(100)} | {"val_loss": 1.0}
    curves = make_curves(make_points([1], **values), "chief-0")
    assert len(curves) == CURVES_SHOWN
    assert curves[0].name == "val_loss"


def test_thinning_keeps_the_last_point_of_each_task() -> None:
    points = [*make_points([1, 2, 3, 4]), *make_points([2], "evaluator-0")]
    assert [(point.task, point.step) for point in thin(points)] == [
        ("chief-0", 1), ("chief-0", 3), ("chief-0", 4), ("evaluator-0", 2),
    ]  # fmt: skip


def test_names_that_change_at_every_step_are_bounded() -> None:
    points: list[Point] = []
    for step in range(300):
        values = {"loss": 0.5, **{f"{step}-{number}": 1.0 for number in range(49)}}
        points += filter(None, [make_point(points, "chief-0", float(step), step, values, 100.0)])
    assert len({name for point in points for name in point.values}) == 51
    assert [set(point.values) for point in points[1:]] == [{"loss", "examples/s"}] * 299
    # Another task has names of its own.
    assert make_point(points, "evaluator-0", 1.0, 1, {"accuracy": 0.5}, None) == Point(
        "evaluator-0", 1.0, 1, {"accuracy": 0.5}
    )
