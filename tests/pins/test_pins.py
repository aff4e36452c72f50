"""Do the known-good sets work? Each is installed with its TensorFlow into an environment of its own and used.

Slow (about 1.5 minutes and 2 GB a set) and online, so by hand: ``pytest -m pins tests/pins``; choose with ``-k 2.1.0``.
What passed stands as ``kind: tested`` in ``knowledge/tables/pins.yaml``. The packages without GPU code are taken where
there are any: the Python side, which the pins are about, is the same.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.labtools import find_python
from tftriage import knowledge
from tftriage.tables import PinSet, parse

pytestmark = [
    pytest.mark.pins,
    pytest.mark.skipif(sys.platform == "win32", reason="the sets are tried on Linux"),
    pytest.mark.skipif(os.environ.get("TFTRIAGE_PINS") != "1", reason="TFTRIAGE_PINS=1 allows gigabytes of downloads"),
]
LIMIT = 1500  # seconds for one step
SETS = [
    pytest.param(row, python, id=f"{row.tensorflow}-py{python}")
    for row in knowledge.load(knowledge.CHECKOUT).tables.pins
    for python in row.pythons
]
# What the pins are about: import (protobuf, NumPy 2), an LSTM (NumPy 1.20), loading a .h5 file (h5py 3).
USE = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import numpy as np
import tensorflow as tf
layers = tf.keras.layers
model = tf.keras.Sequential([layers.LSTM(4, input_shape=(3, 2)), layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
x, y = np.ones((8, 3, 2), "float32"), np.zeros((8, 1), "float32")
model.fit(x, y, verbose=0)
model.save("model.h5")
again = tf.keras.models.load_model("model.h5", compile=False)
assert np.allclose(model.predict(x), again.predict(x))
print("works with", tf.__version__)
"""
VERSIONS = """
import sys
import pkg_resources
for name in sys.argv[1:]:
    print(name, pkg_resources.get_distribution(name).version)
"""


def requirement(row: PinSet) -> str:
    """The package to install for a set: without GPU code where it exists under a name of its own."""
    version = parse(row.tensorflow)
    assert version is not None
    name = "tensorflow-cpu" if (version.major, version.minor) >= (2, 1) else "tensorflow"
    exact = row.tensorflow.count(".") == 2
    return f"{name}=={row.tensorflow}{'' if exact else '.*'}"


def run(*command: str | Path, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, timeout=LIMIT, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    """A folder that is gone afterwards: pytest keeps its own, and fifty environments are too many."""
    yield tmp_path
    shutil.rmtree(tmp_path)


@pytest.mark.parametrize(("row", "python"), SETS)
def test_a_set_installs_imports_trains_and_loads(row: PinSet, python: str, scratch: Path) -> None:
    base = find_python(python)
    if base is None:
        pytest.skip(f"Python {python} is not installed")
    run(base, "-m", "venv", "env", cwd=scratch)
    own = scratch / "env" / "bin" / "python"
    if python == "3.6":  # its pip 18 knows neither manylinux2014 nor yanked releases
        run(own, "-m", "pip", "install", "-q", "pip>=21.3,<22", "setuptools<60", "wheel<0.38", cwd=scratch)
    pins = [f"{name}=={version}" for name, version in row.pins.items()]
    run(own, "-m", "pip", "install", "-q", "--no-cache-dir", requirement(row), *pins, cwd=scratch)
    if python in ("3.12", "3.13"):
        run(own, "-m", "pip", "install", "-q", "setuptools<81", cwd=scratch)
    told = dict(line.split() for line in run(own, "-W", "ignore", "-c", VERSIONS, *row.pins, cwd=scratch).splitlines())
    assert told == row.pins
    assert "works with " + row.tensorflow in run(own, "-c", USE, cwd=scratch)
