"""Random values for every generated chart: what its schema accepts renders to objects that Kubernetes accepts."""

from __future__ import annotations

import copy
import functools
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.kubernetes_objects import find_faults
from tests.property.schema_values import Place, SchemaValues
from tests.support.golden_charts import list_charts
from trainchart.errors import RenderError
from trainchart.helm.io.choose import find_engine
from trainchart.helm.rendering import Rendering, ValueOverrides
from trainchart.host.kubernetes_schemas import read_definitions
from trainchart.render.schema import KUBERNETES_VERSION

TESTS = Path(__file__).parents[1]
CHARTS = [*list_charts(), TESTS.parent / "charts" / "digits", TESTS.parent / "charts" / "mnist"]
"""The other examples' charts have no part that these lack, and each would take some seconds."""
DELIBERATE = (
    r"dnsPolicy: (under Default|with hostNetwork|None needs)",
    r"tolerations\[\d+\]\.(operator|effect|key|value|tolerationSeconds): ",
    r"(cpu|memory)Limit: \S+ is less than the request",
    r"shmSize: /dev/shm of \S+ does not fit into the memory of",
    r"resources\.(limits|requests)\.\S+: (set|is not a Kube|needs a limit|a request of|\S+ is not a whole number)",
    r"\S+: [^\n]* is not a positive quantity",
    r"\$\(TRAINCHART_\S* is not known here",
    r"abels\.\S+: .* is not a valid label value",
    r"a string contains a character that YAML does not allow",
    r"contains <no value>, which Helm removes",
    r"(roles\.\w+\.)?env\.\w+: this variable is set by trainchart itself",
    r"hyperparameters\.\w+: \S+ is (less than the minimum|greater than the maximum|too large or too small)",
    r"hyperparameters\.\w+: \S+ must be (greater|less) than",
    r"run\.resume(Release)?: (set latest, or a step|this is the release itself|this model has no volume)",
    r"run\.resumeRelease: it is not known where release",
    r"networkPolicy\.tensorboardFrom: list the ingress controller's namespace",
    r"networkPolicy\.apiServer: with restrictEgress, list the API server's addresses",
    r"rbac\.create: if false, set run\.controller\.serviceAccountName",
    r"image\.injectLauncher: set run\.controller\.image",
    r"run\.notify: the run controller sends the messages",
    r"run\.queue(PriorityClass)?: (name the queue as well|the run controller waits in the queue)",
    r"\S+kueue\.x-k8s\.io/queue-name: with this label, Kueue queues each StatefulSet",
    r"roles: TF_CONFIG would need \d+ bytes",
    r"roles\.\w+\.saveWaitSeconds: the wait of \d+ s must be shorter than stopGraceSeconds",
    r"service\.statusPort: port \d+ cannot serve both TensorFlow and the status",
    r"tensorboard\.enabled: this chart has no volume",
    r"volumes\.[a-z0-9-]+\.accessMode: (\d+ pods mount it|ReadOnlyMany needs readOnly)",
    r"volumes\.[a-z0-9-]+\.mountPath: (set a folder, or a uri|\S+ is used by|\S+ and \S+ are both mounted at)",
    r"volumes\.[a-z0-9-]+: set (size, existingClaim or uri|uri or existingClaim, not both)",
)
"""What a chart says of values that fit its schema one by one but not together."""

LEFT_TO_KUBERNETES = {"initContainers": "Container", "extraContainers": "Container", "extraVolumes": "Volume"}
"""What the schema only looks at where templates do: drawn as Kubernetes defines it."""

each_chart = pytest.mark.parametrize(
    "chart", CHARTS, ids=lambda chart: chart.parent.name if chart.name == "chart" else f"charts-{chart.name}"
)


@functools.cache
def values_of(chart: Path) -> SchemaValues:
    schema = json.loads((chart / "values.schema.json").read_text())
    for key, definition in LEFT_TO_KUBERNETES.items():
        schema["properties"][key]["items"] = {"$ref": f"#/$defs/io.k8s.api.core.v1.{definition}"}
    return SchemaValues({**schema, "$defs": {**_definitions(), **schema["$defs"]}})


@functools.cache
def _definitions() -> dict[str, Any]:
    definitions: dict[str, Any] = dict(read_definitions(KUBERNETES_VERSION))
    return definitions


def render(chart: Path, values: dict[str, Any]) -> Rendering:
    return find_engine("sdk").render(chart, release="exp-7", overrides=ValueOverrides(set_jsons=(json.dumps(values),)))


def told(error: RenderError) -> str:
    return "\n".join([error.message, *(str(problem) for problem in error.problems)])


@each_chart
@given(data=st.data())
def test_values_that_fit_the_schema_make_valid_objects(chart: Path, data: st.DataObject, tally: Counter[str]) -> None:
    values = data.draw(values_of(chart).overrides(), label="values")
    try:
        rendering = render(chart, values)
    except RenderError as error:
        assert any(re.search(message, told(error)) for message in DELIBERATE), told(error)
        tally["values that fit, refused by the chart with a reason of its own"] += 1
        return
    assert find_faults(rendering) == []
    assert "<no value>" not in json.dumps(values), "Helm has removed it"
    tally["values that fit, objects valid"] += 1


@each_chart
@given(data=st.data())
def test_values_that_break_the_schema_are_refused(chart: Path, data: st.DataObject, tally: Counter[str]) -> None:
    values = data.draw(broken_values(chart), label="values")
    with pytest.raises(RenderError) as refusal:
        render(chart, values)
    assert refusal.value.message.startswith("the values do not match the schema"), told(refusal.value)
    tally["values that break the schema, refused by it"] += 1


@st.composite
def broken_values(draw: st.DrawFn, chart: Path) -> dict[str, Any]:
    """Draw values with one thing wrong, somewhere."""
    known = values_of(chart)
    breakable = _breakable(chart)
    if draw(st.integers(0, 3)) == 0:
        section = draw(st.sampled_from(known.sections()))
        return _nested((*section, draw(st.sampled_from(["gpuz", "replica", "x-y", "Enabled", "0"]))), 1)
    place = draw(st.sampled_from(breakable))
    return _nested(place.path, copy.deepcopy(draw(st.sampled_from(known.breaking(place)))))


@functools.cache
def _breakable(chart: Path) -> tuple[Place, ...]:
    known = values_of(chart)
    return tuple(place for place in known.places() if known.breaking(place))


def _nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    for key in reversed(path):
        value = {key: value}
    return dict(value)
