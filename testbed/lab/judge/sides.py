# SPDX-License-Identifier: GPL-2.0-only
"""The two sides of a comparison: finished runs as they are; commits, kernels and modules measured.

What is measured is measured by testbed/run: a commit's by its own, in a work tree of it below
build/diff; a kernel's and a module's by this one. Points that are there already are not run again.
"""

import hashlib
import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.ask import scenario as scenarios
from lab.common.errors import BadInput, LabError
from lab.common.options import overrides
from lab.judge import enough
from lab.judge.enough import ENOUGH_SEEDS, NEEDED, SEEDS_FOR_95, USUAL_SEEDS
from lab.run import git, usermodules
from lab.run.backends import open_backend
from lab.run.backends.virtual import LAB_KERNEL, VirtualBackend
from lab.run.build import BUILD, PROJECT
from lab.run.children import run_to_end
from lab.run.runs import digest, is_run, read_meta, without_options

RESULTS = Path("results") / "diff"
KINDS = "the folder of a run, a commit, a kernel source, or a module (.c, .ko, or its folder)"


@dataclass(frozen=True)
class Wanted:
    """What to run where there is no run to go by; SEEDS 0: as many as are usual."""

    scenario: str
    settings: list[str]
    algorithms: tuple[str, ...]
    seeds: int
    jobs: int

    def check(self, folders: int) -> None:
        """Refuse what was given for nothing, beside so many FOLDERS of runs."""
        told = {
            "--scenario": self.scenario,
            "--set": self.settings,
            "--seeds": self.seeds,
            "--algorithms": self.algorithms if folders > 1 else (),
        }
        given = [option for option, value in told.items() if value]
        if folders and given:
            raise BadInput(f"{', '.join(given)}: beside a run it is the run that says what is run")


@dataclass(frozen=True)
class Side:
    """Something that can be measured: by the testbed of TREE, with a user's MODULE if it is one."""

    label: str
    tree: Path
    module: str = ""
    environment: tuple[tuple[str, str], ...] = ()


def measure(a: str, b: str, wanted: Wanted) -> tuple[Path, Path]:
    """Return two folders of runs: A and B, or what was measured of them."""
    folders = {text: Path(text) for text in (a, b) if is_run(Path(text))}
    others = [text for text in (a, b) if text not in folders]
    wanted.check(2 - len(others))
    if not others:
        return Path(a), Path(b)
    found = {text: _side(text) for text in others}
    if folders:
        text, folder = next(iter(folders.items()))
        name, source, algorithms, seeds = _as(folder)
        if len(seeds) < ENOUGH_SEEDS:
            more = ["--seeds", str(SEEDS_FOR_95), "--out", text, "--resume"]
            raise BadInput(
                f"{text} has {enough.count(len(seeds))}; {NEEDED}: {_again(folder, more)}"
            )
    elif wanted.scenario:
        count = wanted.seeds or USUAL_SEEDS
        if count < ENOUGH_SEEDS:
            raise BadInput(f"--seeds {count}: {NEEDED}")
        loaded = scenarios.load(wanted.scenario, overrides(wanted.settings))
        name, source = loaded.id, loaded.source
        algorithms, seeds = loaded.run.algorithms, list(range(1, count + 1))
    else:
        raise BadInput("neither is the folder of a run: say what to run with --scenario NAME")
    algorithms = wanted.algorithms or algorithms
    _check_modules(found, folders, {*algorithms, *_in_flows(source)})
    for text, side in found.items():
        folders[text] = _run(side, name, source, algorithms, seeds, wanted.jobs)
    return folders[a], folders[b]


def _check_modules(sides: dict[str, Side], folders: dict[str, Path], asked: set[str]) -> None:
    """Refuse, before anything is measured, a user's module among SIDES that registers nothing that
    the other side has: another module, or a run in FOLDERS; neither would be compared. A kernel or
    a commit may have what the module registers: there it must be ASKED for."""
    modules = {text: _registered(side.module) for text, side in sides.items() if side.module}
    if not modules:
        return
    has = dict(modules)
    for text, folder in folders.items():
        meta = read_meta(folder)
        brought = (
            name for one in meta.get("user_modules", []) for name in one.get("algorithms", ())
        )
        flows = _in_flows(meta["source"])
        has[text] = tuple(dict.fromkeys((*meta["algorithms"], *brought, *flows)))
    if not set.intersection(*map(set, has.values())):
        told = "; ".join(
            f"{text} {'registers' if text in modules else 'has'} {', '.join(of) or 'none'}"
            for text, of in sorted(has.items(), key=lambda one: one[0] not in modules)
        )
        raise BadInput(f"{told}: both versions of a module must register the same name")
    for text, side in sides.items():
        if text in modules or asked.intersection(*modules.values()):
            continue
        (module, registered), *_ = modules.items()
        told = f"{module} registers {', '.join(registered)}, which is not asked of {text}"
        if side.environment:
            cure = f"give --algorithms {registered[0]} if that kernel has it"
        else:
            cure = "a commit has no module of yours: compare two modules, or a run made with one"
        raise BadInput(f"{told}: {cure}")


def _in_flows(source: dict[str, Any]) -> list[str]:
    """Return the algorithms that flows of a scenario's SOURCE have, each once: fixed ones, and
    those of an axis' choices."""
    found: dict[str, None] = {}
    for piece in scenarios.pieces_of(source):
        flows = piece.get("flows", [])
        for flow in flows.values() if isinstance(flows, dict) else flows:
            if name := flow.get("algorithm"):
                found[name] = None
    return list(found)


def _registered(module: str) -> tuple[str, ...]:
    """Return the algorithms that a user's MODULE registers, by a boot of the lab kernel."""
    backend = open_backend(VirtualBackend.name, "")
    for refused in usermodules.add(backend, [module]):
        raise LabError(refused.keep_log())
    return tuple(name for one in backend.build.user for name in one.algorithms)


def _again(folder: Path, options: list[str]) -> str:
    """Return the command that made the run in FOLDER, with these OPTIONS in place of its own."""
    words = shlex.split(read_meta(folder).get("command", ""))
    kept = without_options(words, ("--seeds", "--seed", "--out"), ("--resume",))
    return shlex.join([*(kept or ["testbed/run", "..."]), *options])


def _side(text: str) -> Side:
    """Find out what TEXT is."""
    path = Path(text).expanduser()
    label = f"{path.name}-{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:6]}"
    if (path / "arch" / "um").is_dir() or (path.is_file() and ".tar" in path.suffixes):
        return Side(label, PROJECT, "", (("KERNEL_SRC", str(path.resolve())),))
    if path.suffix in (".c", ".ko") or (path / "Kbuild").is_file():
        if not path.exists():
            raise BadInput(f"no module {text}: check the path")
        return Side(label, PROJECT, str(path.resolve()))
    if commit := _commit(text):
        return Side(commit[:12], _work_tree(commit))
    raise BadInput(f"{text} is none of these: {KINDS}")


def _as(folder: Path) -> tuple[str, dict[str, Any], tuple[str, ...], list[int]]:
    """Return how the run in FOLDER was made: scenario, its source, algorithms and seeds."""
    meta = read_meta(folder)
    if "source" not in meta:
        raise BadInput(f"{folder} is no run of one scenario: it cannot be repeated here")
    made = meta.get("backend", VirtualBackend.name), meta.get("kernel", LAB_KERNEL)
    if made != (VirtualBackend.name, LAB_KERNEL):
        raise BadInput(
            f"{folder}: only runs of the virtual lab with its usual kernel can be measured against:"
            " give two folders"
        )
    return meta["scenario"], meta["source"], tuple(meta["algorithms"]), meta["seeds"]


def _run(
    side: Side,
    name: str,
    source: dict[str, Any],
    algorithms: tuple[str, ...],
    seeds: list[int],
    jobs: int,
) -> Path:
    """Measure SIDE and return the folder."""
    out = (RESULTS / f"{name}-{side.label}-{digest(source)}").resolve()
    out.mkdir(parents=True, exist_ok=True)
    file = out / f"{name}.toml"
    written = scenarios.without_idle_bursts(source)
    file.write_text(as_toml({key: v for key, v in written.items() if key != "question"}))
    if len(seeds) > 1 and seeds != list(range(1, len(seeds) + 1)):
        raise BadInput("the run's seeds are not 1 to N, nor a single one: it cannot be repeated")
    of_seeds = ["--seeds", str(len(seeds))] if len(seeds) > 1 else ["--seed", str(seeds[0])]
    command = [
        str(side.tree / "testbed" / "run"), str(file), "--algorithms", ",".join(algorithms),
        *of_seeds, "--jobs", str(jobs), "--out", str(out), "--resume",
    ]  # fmt: skip
    command += ["--module", side.module] if side.module else []
    print(f"diff: measuring {side.label}: {shlex.join(command)}", file=sys.stderr, flush=True)
    if run_to_end(command, os.environ | dict(side.environment)):
        raise LabError(f"{side.label} could not be measured: the run above says why")
    return out


def _commit(text: str) -> str:
    """Return the commit of this project that TEXT is, in the work tree that we are in or in the
    lab's own; nothing if it is none."""
    for folder in (Path(), PROJECT):
        found = git.told("rev-parse", "--verify", "--quiet", f"{text}^{{commit}}", folder=folder)
        if found and git.told("cat-file", "-t", found) == "commit":
            return found
    return ""


def _work_tree(commit: str) -> Path:
    """Return a work tree of COMMIT, made if it is not there."""
    tree = BUILD / "diff" / commit[:12]
    if not (tree / "testbed" / "run").exists():
        tree.parent.mkdir(parents=True, exist_ok=True)
        command = ["git", "-C", str(PROJECT), "worktree", "add", "--force", "--detach"]
        done = subprocess.run([*command, str(tree), commit], capture_output=True, text=True)
        if done.returncode or not (tree / "testbed" / "run").exists():
            why = done.stderr.strip().splitlines()[-1:] or ["it has no testbed/run"]
            raise LabError(f"no work tree of {commit[:12]}: {why[0]}")
    return tree


def as_toml(source: dict[str, Any]) -> str:
    """Return SOURCE, a parsed TOML file, as one that means the same."""
    return "".join(f"{json.dumps(key)} = {_toml(value)}\n" for key, value in source.items())


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        inside = (f"{json.dumps(k, ensure_ascii=False)} = {_toml(v)}" for k, v in value.items())
        return f"{{ {', '.join(inside)} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else repr(value)
