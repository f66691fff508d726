# SPDX-License-Identifier: GPL-2.0-only
"""All that a worker needs to run points, in one archive: made here, opened there.

    manifest.json      what it is, and which packages results depend on
    linux              the kernel
    stage/             its modules and ours, and the tools
    project/testbed/   the lab's own code
    user/, traces/     files that the user brought: modules, traces of links

Same files, same bytes, same name.
"""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

from lab.ask import linktraces
from lab.ask.points import Point
from lab.common.errors import BadInput, LabError
from lab.run.backends.base import Backend
from lab.run.backends.virtual import VirtualBackend
from lab.run.build import PROJECT, TESTBED, Build, Kernel, UserModule

MANIFEST = "manifest.json"
PACKAGES = ("numpy", "polars")  # what makes figures of samples: their bytes may depend on it
CODE = ("*.py", "guest/init")


@dataclass(frozen=True)
class Bundle:
    """NAME: the hash of what is in it; PACKED: a gzipped tar."""

    name: str
    packed: bytes


def make(backend: Backend, points: list[Point]) -> Bundle:
    """Pack what BACKEND needs to run POINTS."""
    if not isinstance(backend, VirtualBackend):
        raise BadInput(f"--backend {backend.name} runs here alone: other machines take virtual")
    build, kernel = backend.build, backend.build.kernel
    traces = _trace_files(points)
    manifest = {
        "kernel": {"key": kernel.key, "release": kernel.release, "arch": kernel.arch},
        "variant": backend.kernel,
        "patches_sctp": build.patches_sctp,
        "machine": build.machine,
        "user": [[module.file.name, module.key, module.algorithms] for module in build.user],
        "traces": {name: f"traces/{i}" for i, name in enumerate(traces)},
        "packages": {name: metadata.version(name) for name in PACKAGES},
    }
    files = {"linux": kernel.image}
    files |= {f"stage/{path}": build.stage / path for path in _below(build.stage)}
    code = {path for pattern in CODE for path in (TESTBED / "lab").rglob(pattern)}
    files |= {f"project/{path.relative_to(PROJECT)}": path for path in code}
    files |= {f"user/{module.file.name}": module.file for module in build.user}
    files |= {manifest["traces"][name]: Path(name) for name in traces}
    return _packed(json.dumps(manifest, sort_keys=True).encode(), files)


def _below(folder: Path) -> Iterator[Path]:
    return (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def _trace_files(points: Iterable[Point]) -> list[str]:
    """Return the files that links of POINTS follow; models are in the lab's own code."""
    links = (link for point in points for link in point.spec["links"].values())
    names = {link[key] for link in links for key in linktraces.KEYS}
    return sorted(name for name in names if linktraces.is_file(name, Path()))


def _packed(manifest: bytes, files: dict[str, Path]) -> Bundle:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        _add(tar, MANIFEST, manifest, 0o644)
        for name in sorted(files):
            executable = files[name].stat().st_mode & 0o100
            _add(tar, name, files[name].read_bytes(), 0o755 if executable else 0o644)
    name = hashlib.sha256(raw.getbuffer()).hexdigest()[:16]
    return Bundle(name, gzip.compress(raw.getbuffer(), 6, mtime=0))


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), mode
    tar.addfile(info, io.BytesIO(content))


@dataclass(frozen=True)
class _Unpacked(Build):
    """A build that was made on another machine and lies in FOLDER."""

    folder: Path = Path()

    @property
    def no_sctp_because(self) -> str:
        return "" if self.kernel.source else "where its bundle was made there was none"

    @cached_property
    def stage(self) -> Path:
        return self.folder / "stage"


def backend_in(folder: Path) -> VirtualBackend:
    """Return the backend whose bundle was unpacked into FOLDER."""
    manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
    _check_packages(manifest["packages"])
    linktraces.elsewhere |= {name: folder / at for name, at in manifest["traces"].items()}
    told = manifest["kernel"]
    kernel = Kernel(
        key=told["key"],
        release=told["release"],
        image=folder / "linux",
        tree=folder,
        modules=folder / "stage" / "lib" / "modules" / told["release"],
        arch=told["arch"],
        source=folder if manifest["patches_sctp"] else None,
    )
    user = tuple(
        UserModule(folder / "user" / name, key, tuple(algorithms))
        for name, key, algorithms in manifest["user"]
    )
    build = _Unpacked(kernel, VirtualBackend.name, manifest["machine"], user, folder)
    return VirtualBackend(build, manifest["variant"])


def _check_packages(wanted: dict[str, str]) -> None:
    """Refuse versions with which results might not be the same bytes."""
    wrong = [name for name, version in wanted.items() if _version(name) != version]
    if wrong:
        cure = " ".join(f"{name}=={wanted[name]}" for name in wrong)
        raise LabError(f"its Python lacks what results are made by: pip install {cure}")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
