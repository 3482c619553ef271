"""Which revision of a release had an image that can be pulled, as far as Helm's records say it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.small_cluster.cluster_objects import NAMESPACE, NOW, make_revision, make_sets
from trainchart.cluster.helm_record import describe_earlier_image
from trainchart.cluster.snapshot import Unreadable
from trainchart.reports.report import Report, ReportedProblem, TrainingKey

SET = "exp1-mnist-worker"


def find(*images: str, live: str = "ml/a:1.4.O", cause: str = "image-pull", records: Any = None) -> str:
    """Return what is said of exp1, whose workers cannot pull ml/a:1.4.O; `images` are those of revisions 1, 2, …"""
    sets = make_sets()
    for each in sets:
        each["spec"]["template"]["spec"]["containers"][0]["image"] = live
    message = 'Back-off pulling image "ml/a:1.4.O": not found'
    problems = (ReportedProblem(f"{SET}-1", cause, message),)
    report = Report(TrainingKey(NAMESPACE, "exp1", "mnist"), NOW, "Starting", "record", problems=problems)
    made = tuple(make_revision(number, image) for number, image in enumerate(images, 1))
    return " ".join(describe_earlier_image(report, sets, made if records is None else records))


def test_the_revision_before_a_wrong_tag_is_named() -> None:
    assert find("ml/a:1.4.0", "ml/a:1.4.O") == (
        "revision 1 of the release has the image ml/a:1.4.0, and ml/a:1.4.O came later: helm rollback exp1 1 "
        "-n team-a restores revision 1, including its other values. Or run helm upgrade with an image that was pushed"
    )
    assert "revision 2 of the release has the image ml/a:1.3" in find("ml/a:1.2", "ml/a:1.3", *["ml/a:1.4.O"] * 2)


@pytest.mark.parametrize(
    ("images", "options"),
    [
        (["ml/a:1.4.O"], {}),
        (["ml/a:1.4.O", "ml/a:1.4.O"], {}),
        ([], {}),
        (["ml/a:1.4.0", "ml/a:1.4.0"], {}),
        (["ml/a:1.4.0", "ml/b:1"], {"live": "ml/b:1"}),
        (["ml/a:1.4.0", "ml/a:1.4.O"], {"cause": "unschedulable"}),
        ([], {"records": Unreadable("secrets", "forbidden")}),
        ([], {"records": ({"metadata": {"labels": {"version": "2"}}}, {"metadata": {}, "data": {"release": "junk"}})}),
    ],
    ids=["installed so", "always so", "no records", "by hand", "an init container", "other cause", "hidden", "junk"],
)
def test_no_rollback_is_advised_that_does_not_help(images: list[str], options: dict[str, Any]) -> None:
    assert not find(*images, **options)
