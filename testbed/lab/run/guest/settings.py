# SPDX-License-Identifier: GPL-2.0-only
"""What a point sets in the kernel, and what the point after it takes back."""

from pathlib import Path

from lab.ask.algorithms import ALGORITHMS


class Parameters:
    """Module parameters: what a point does not set has the module's own value."""

    def __init__(self):
        self.defaults: dict[Path, str] = {}

    def set(self, modules: dict[str, dict[str, int]]) -> None:
        """Set algorithm -> parameter -> value, after taking back what the point before set."""
        for path, value in self.defaults.items():
            path.write_text(value)
        for algorithm, values in modules.items():
            for name, value in values.items():
                path = parameter_file(algorithm, name)
                self.defaults.setdefault(path, path.read_text())
                try:
                    path.write_text(str(value))
                except OSError as error:
                    raise ValueError(f"{algorithm} refuses {name} = {value}: {error}") from None


def parameter_file(algorithm: str, name: str) -> Path:
    """Return where the parameter NAME of an ALGORITHM is: in its module, or its agent's."""
    folders = [f"/sys/module/{m}/parameters" for m in ALGORITHMS[algorithm].parameter_modules]
    paths = [Path(folder, name) for folder in folders]
    return next((path for path in paths if path.exists()), paths[0])


def write_sysctl(name: str, value: str) -> tuple[Path, str]:
    """Give the sysctl NAME of this network namespace a VALUE; return its file, and what it was."""
    path = Path("/proc/sys", *name.split("."))
    try:
        before = path.read_text()
        path.write_text(value)
    except OSError as error:
        raise RuntimeError(f"sysctl {name} = {value}: {error.strerror}") from None
    return path, before
