"""A program of a platform team: it packs a model's chart when nothing is wrong with it, and says what it did as JSON.

Typed as strictly as ours, and with nothing but what trainchart.api promises.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from trainchart.api import (
    Chart,
    Finding,
    Model,
    Package,
    Severity,
    TrainchartError,
    check_chart,
    load_model,
    package_chart,
    render_chart,
)


def pack(spec: Path, destination: Path) -> Package | None:
    """Return the package; None where the chart has errors."""
    model: Model = load_model(spec)
    chart: Chart = render_chart(model)
    findings: tuple[Finding, ...] = check_chart(chart)
    if any(finding.severity is Severity.error for finding in findings):
        return None
    return package_chart(chart, destination)


def main() -> int:
    """Pack the model whose spec is the first argument into the folder that is the second."""
    try:
        package = pack(Path(sys.argv[1]), Path(sys.argv[2]))
    except TrainchartError as error:
        said = [str(problem) for problem in error.problems]
        print(json.dumps({"error": type(error).__name__, "message": error.message, "problems": said}))
        return 1
    print(json.dumps(package and {"path": str(package.path), "identity": package.identity}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
