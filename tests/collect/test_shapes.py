"""Every collector has a shape, and what it says of this machine has it."""

import json
import os
import subprocess
import sys

import pytest

from tests.collect import shapes
from tftriage.collect import registry, runner
from tftriage.probes import PROBES
from tftriage.requests import GIVEN

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def test_every_collector_has_a_shape_and_every_need_a_collector():
    assert runner.load() == {}
    assert set(shapes.SHAPES) == set(registry.COLLECTORS)
    needed = {name for probe in PROBES.values() for name in probe.needs}
    assert needed - set(registry.COLLECTORS) <= set(GIVEN)


def test_this_machine():
    # Its own Python has no TensorFlow: what needs one says so. (A sample of one second, no workload.)
    args = {"python": sys.executable, "module": "json", "seconds": 1, "libraries": ["no-such-library"], "limit": 100}
    requests = [json.dumps({"collect": name, "args": args}) for name in shapes.SHAPES]
    done = subprocess.run(
        [sys.executable, "-m", "tftriage.collect"], input="\n".join(requests).encode(), capture_output=True,
        cwd=ROOT, timeout=300,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert len(lines) == len(requests), done.stderr
    assert [problem for line in lines for problem in shapes.problems(line)] == []
    failed = [line for line in map(json.loads, lines) if line["status"] in ("error", "timeout")]
    assert [line for line in failed if line["fact"] != "gpu.devices"] == []  # a dead driver of this very machine


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({"fact": "system.user", "status": "ok", "value": {"name": "x", "home": "x"}}, "temp"),
        ({"fact": "system.user", "status": "ok", "value": {"name": "x", "home": "x", "temp": "", "new": 1}}, "new"),
        ({"fact": "system.user", "status": "ok", "value": {"name": 1, "home": "x", "temp": "x"}}, "name"),
        ({"fact": "system.user", "status": "absent", "value": None}, "without a reason"),
        ({"fact": "system.user", "status": "fine", "value": None}, "Invalid enum value"),
    ],
)
def test_a_wrong_line_is_seen(line, problem):
    data = json.dumps({"source": "x", "seconds": 0.1, "note": "", **line}).encode()
    assert problem in "".join(shapes.problems(data))
