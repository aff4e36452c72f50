"""What the words of an error say, where nothing could be measured: the last resort before the person is asked."""

from __future__ import annotations

import re

from tftriage.facts import Facts
from tftriage.probes.base import UNKNOWN, Evidence, Finding, probe, unknown
from tftriage.probes.logs import pasted
from tftriage.probes.named import attempts, source
from tftriage.tables import Tables, parse

_API = re.compile(
    r"compiled against A[PB]I version (?:0x)?(?P<built>[0-9a-f]+) "
    r"but this version of numpy is (?:0x)?(?P<have>[0-9a-f]+)",
    re.IGNORECASE,
)
_SIZE = re.compile(r"Expected (?P<built>\d+) from C header, got (?P<have>\d+) from PyObject", re.IGNORECASE)
_NUMPY_2 = re.compile(
    r"compiled using NumPy 1\.x|_ARRAY_API not found|numpy<2|some modules will need time to support NumPy 2"
)
_ATTRIBUTE = re.compile(r"module '(?P<module>tensorflow[\w.]*)' has no attribute '?(?P<name>\w+)")
_GONE = re.compile(r"No module named '?tensorflow\.(?P<name>contrib|examples)\b")
# The standalone Keras speaks, or one of its files asks: then its version is at fault, not the program.
_BY_KERAS = re.compile(r"Using TensorFlow backend|(?:site|dist)-packages[\\/]+keras[\\/]", re.IGNORECASE)
# Names that TensorFlow 2 took away: a program for 1.x says so on a healthy installation (the migration guide).
_REMOVED = """
Session InteractiveSession ConfigProto GPUOptions placeholder placeholder_with_default get_variable
variable_scope get_variable_scope global_variables_initializer initialize_all_variables get_default_graph
reset_default_graph app flags contrib logging gfile layers assign get_collection GraphDef set_random_seed log
to_float to_int32 truncated_normal random_uniform random_normal matrix_inverse
"""
REMOVED = frozenset(_REMOVED.split())
_KINDS = (
    ("circular", re.compile(r"partially initialized module 'tensorflow'")),
    ("descriptors", re.compile(r"Descriptors cannot (?:not )?be created directly")),
    ("numpy-2", _NUMPY_2),
    ("estimator", re.compile(r"(?:No module named|cannot import name|from|module) '?[\w.' ]*tensorflow_estimator")),
    ("protobuf-clash", re.compile(r"mismatched Protobuf Gencode|from 'google\.protobuf|protobuf runtime version")),
    ("keras", re.compile(
        r"(?:No module named '?|cannot import name '\w+' from (?:partially initialized module )?'|module ')"
        r"(?:tf_)?(?:keras|tensorflow\.(?:python\.)?keras)\b|Keras requires TensorFlow \d")),
    ("half", re.compile(
        r"pywrap_tensorflow\w*' has no attribute|_swigconstant|cannot import name '\w+' from 'tensorflow\b|"
        r"No module named '?tensorflow\.(?:python|core)\b")),
)  # fmt: skip
_LAST = re.compile(r"^\s*(?:[\w.]*(?:Error|Exception))\b.*", re.MULTILINE)


@probe(
    "error_kind",
    answers=(
        "descriptors", "numpy-2", "numpy-old", "numpy-new", "protobuf-clash", "estimator", "keras", "half", "half-api",
        "old-program", "circular",
    ),
    needs=("tf.import", "tf.package", "paste.text"),
    fills=("error",),
)  # fmt: skip
def error_kind(facts: Facts, tables: Tables) -> Finding:
    """Which package's version the error itself complains about.

    Samples: ``RuntimeError: module compiled against API version 0xe but this version of numpy is 0xd`` and
    ``AttributeError: module 'tensorflow' has no attribute 'compat'``
    """
    version = (facts.value("tf.package") or {}).get("version")
    for fact, text in attempts(facts):
        flat = " ".join(text.split())
        answer, shown = _numpy(flat) or _attribute(flat, version) or _named(text, flat) or ("", "")
        if answer:
            params = {"error": shown[:160]}
            return Finding(answer, (Evidence("said.error", params, "bad"), source(fact)), params)
    if not pasted(facts):
        return unknown(facts, "paste.text")
    return Finding(UNKNOWN, (Evidence("said.nothing"),), reason="paste.text: its words name no package's version")


def _numpy(flat: str) -> tuple[str, str] | None:
    """NumPy's own words: which of the two sides is older. A number of 2.x against one of 1.x is "NumPy 2"."""
    for pattern, base in ((_API, 16), (_SIZE, 10)):
        hit = pattern.search(flat)
        if hit is None:
            continue
        built, have = int(hit["built"], base), int(hit["have"], base)
        if built > have:
            return "numpy-old", hit[0]
        return ("numpy-2" if have >= 0x2000000 or (base == 10 and have >= 96) else "numpy-new"), hit[0]
    return None


def _attribute(flat: str, version: str | None) -> tuple[str, str] | None:
    """A name that the package lacks: half an installation, an estimator of another version, or a program for 1.x."""
    hit = _ATTRIBUTE.search(flat)
    known = parse(version)
    if hit is None:
        gone = _GONE.search(flat)
        return ("old-program", gone[0]) if gone and (known is None or known.major >= 2) else None
    if hit["name"] in REMOVED and (known is None or known.major >= 2) and _BY_KERAS.search(flat):
        return "keras", hit[0]
    if "estimator" in hit["module"]:
        return "estimator", hit[0]
    if hit["name"] in REMOVED and (known is None or known.major >= 2):
        return "old-program", hit[0]
    if hit["name"] == "estimator" and known is not None and known >= parse("2.16"):  # type: ignore[operator]
        return "old-program", hit[0]
    if hit["name"] in ("compat", "estimator", "feature_column"):
        return "half-api", hit[0]
    return ("keras", hit[0]) if "keras" in hit["module"] else ("half", hit[0])


def _named(text: str, flat: str) -> tuple[str, str] | None:
    for answer, pattern in _KINDS:
        hit = pattern.search(flat)
        if hit is not None:
            line = next((one for one in _LAST.findall(text) if pattern.search(one)), hit[0])
            return answer, line.strip()
    return None


_USE = (
    ("host", re.compile(
        r"OOM when allocating(?:(?!OOM when).){0,600}?(?:device:)?cpu:\d|by allocator (?:mkl)?cpu|std::bad_alloc|"
        r"MemoryError\b|Unable to allocate [\d.]+ [KMGT]?iB for an array", re.IGNORECASE)),
    ("tensor", re.compile(r"OOM when allocating|ran out of memory trying to allocate", re.IGNORECASE)),
    ("sub-127", re.compile(r"Could not load library cudnn_\w+\.dll\. Error code (?:127|193)|"
                           r"libcudnn_\w+\.so\S*: (?:undefined symbol|cannot open)", re.IGNORECASE)),
    ("sub-126", re.compile(r"Could not load library (?:lib)?cudnn_\w+\.(?:dll|so)", re.IGNORECASE)),
    ("handle", re.compile(
        r"(?:create|destroy) cudnn handle|Failed to get convolution algorithm|"
        r"CUDNN_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED|INTERNAL_ERROR)", re.IGNORECASE)),
    ("blas", re.compile(
        r"(?:create|destroy) cublas handle|Blas \w+ launch failed|"
        r"CUBLAS_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED|INTERNAL_ERROR)", re.IGNORECASE)),
    ("at-start", re.compile(r"CUDA_ERROR_OUT_OF_MEMORY|CUDA out of memory", re.IGNORECASE)),
)  # fmt: skip


@probe(
    "use_error",
    answers=("host", "tensor", "sub-126", "sub-127", "handle", "blas", "at-start"),
    needs=("tf.operation", "tf.gpus", "paste.text"),
    fills=("error",),
)
def use_error(facts: Facts, tables: Tables) -> Finding:
    """What failed while the GPU was used: main memory, the card's memory, a handle, a part of cuDNN.

    Samples: ``OOM when allocating tensor with shape[16,19,19,1024] and type float on …/device:CPU:0 by allocator cpu``
    and ``Could not load library cudnn_cnn_infer64_8.dll. Error code 126``
    """
    for fact, text in attempts(facts):
        flat = " ".join(text.split())
        found = next(((answer, hit[0]) for answer, pattern in _USE if (hit := pattern.search(flat))), None)
        if found is not None:
            params = {"error": found[1] if len(found[1]) <= 160 else found[1][:159] + "…"}
            return Finding(found[0], (Evidence("said.error", params, "bad"), source(fact)), params)
    if not pasted(facts):
        return unknown(facts, "paste.text")
    return Finding(UNKNOWN, (Evidence("said.nothing"),), reason="paste.text: none of the known errors of use is in it")


_CONDA = (
    ("changed-build", re.compile(r"gpu\S* *--> *\S*(?:mkl|eigen|cpu)")),
    ("bits", re.compile(r"/win-32\b|platform *: *win-32", re.IGNORECASE)),
    ("python", re.compile(r"incompatible with the existing python installation|Your python: python=")),
    ("not-packaged", re.compile(r"PackagesNotFoundError|ResolvePackageNotFound|Packages missing in current channels")),
    ("conflict", re.compile(r"cud(?:atoolkit|nn)\b")),
    ("driver-words", re.compile(r"incompatible with your CUDA driver|__cuda\b")),
)


@probe(
    "conda_says",
    answers=("changed-build", "bits", "python", "not-packaged", "conflict", "driver-words"),
    needs=("paste.text",),
    fills=("error",),
)
def conda_says(facts: Facts, tables: Tables) -> Finding:
    """What conda complains about.

    Samples: ``_tflow_select  2.1.0-gpu --> 2.3.0-mkl``, ``Your python: python=3.8`` and, with the very number that is
    installed, ``feature:/win-64::__cuda==11.0=0 … Your installed CUDA driver is: 11.0``
    """
    flat = " ".join(pasted(facts).split())
    if not flat:
        return unknown(facts, "paste.text")
    for answer, pattern in _CONDA:
        if hit := pattern.search(flat):
            params = {"error": hit[0]}
            return Finding(answer, (Evidence("said.error", params, "bad"), source("paste.text")), params)
    return Finding(UNKNOWN, (Evidence("said.nothing"),), reason="paste.text: none of conda's known complaints is in it")


_PIP = re.compile(r"pip version (?P<version>\d+[\d.]*)|\bpip (?P<other>\d+\.\d[\d.]*) from ")
PIP_KNOWS_TAGS = 19  # an older pip does not know manylinux2010 and skips every wheel of TensorFlow 2 (PEP 571)
MAC_GPU_END = "1.2"  # from here on no GPU package was made for macOS (release notes of 1.2)


@probe(
    "pip_says",
    answers=("old-pip", "no-gpu-platform", "native-windows"),
    needs=("system.os", "paste.text"),
    fills=("error",),
)
def pip_says(facts: Facts, tables: Tables) -> Finding:
    """Why pip finds no file, where its own lines and the operating system tell.

    Sample: ``You are using pip version 9.0.1, however version 20.1 is available.``
    """
    flat = " ".join(pasted(facts).split())
    if not flat:
        return unknown(facts, "paste.text")
    pip = _PIP.search(flat)
    number = parse(pip["version"] or pip["other"]) if pip else None
    system = str((facts.value("system.os") or {}).get("system") or "")
    asked = re.search(r"tensorflow[-_]gpu(?:==(?P<version>[\d.]+\d))?", flat)
    wanted = parse(asked["version"]) if asked else None
    answer, params = "", dict[str, str]()
    if pip and number is not None and number.major < PIP_KNOWS_TAGS:
        answer, params = "old-pip", {"error": pip[0].strip()}
    elif system == "Darwin" and asked and (wanted is None or wanted >= parse(MAC_GPU_END)):  # type: ignore[operator]
        answer, params = "no-gpu-platform", {"error": asked[0]}
    elif system == "Windows" and (hit := re.search(r"nvidia-nccl\S*|tensorflow\[and-cuda\]", flat)):
        answer, params = "native-windows", {"error": hit[0]}
    if answer:
        return Finding(answer, (Evidence(f"said.{answer}", params, "bad"), source("paste.text")), params)
    return Finding(UNKNOWN, (Evidence("said.nothing"),), reason="paste.text: pip's lines do not tell why")
