"""The software bed: what a cluster offers besides its scheduler. Lmod with some modules, MPI, rsync, a task spooler."""

import os
from pathlib import Path

from beds import packages, place
from beds.bed import Say, line, news, say_at_once
from beds.place import beds_folder, claim, locked, require_root, write_whole

# nginx: a proxy before the server, in its tests; pypy3: a Python 3.9, as old nodes have it
PACKAGES = ("lmod", "openmpi-bin", "rsync", "task-spooler", "nginx-light", "pypy3")
SITE = Path("/etc/lmod/modules")  # where Debian's Lmod looks
INIT = Path("/usr/share/lmod/lmod/init/bash")

# Harmless: they set variables, and one of them fails.
MODULES = {
    "onward-test/1.0": 'setenv("ONWARD_TEST_MODULE", "1.0")',
    "onward-test/2.0": 'setenv("ONWARD_TEST_MODULE", "2.0")',
    "python/3.11": 'setenv("BED_PYTHON", "3.11")\nprepend_path("PATH", "/usr/bin")',
    "python3/3.11": 'setenv("BED_PYTHON", "3.11")\nprepend_path("PATH", "/usr/bin")',
    "cuda/12.0": 'setenv("CUDA_HOME", "/opt/cuda-12.0")\nsetenv("BED_CUDA", "12.0")',
    "needs-cuda/1.0": 'depends_on("cuda/12.0")\nsetenv("BED_NEEDS_CUDA", "1.0")',
    "broken/1.0": 'LmodError("this module is broken on purpose")',
}


class SoftwareBed:
    """Nothing runs here: packages, and module files linked into where Lmod looks for them."""

    name = "software"
    packages: tuple[str, ...] = PACKAGES
    answers: tuple[str, ...] = ()

    def __init__(self, folder: Path | None = None, *, say: Say = say_at_once) -> None:
        self.top = (folder or beds_folder() / self.name).absolute()
        self._say = say

    @property
    def modules(self) -> Path:
        return self.top / "modules"

    def up(self) -> None:
        if os.geteuid() != 0:
            packages.ensure(PACKAGES)
            if not self.is_up():
                require_root("bringing up the software bed")
            return
        with locked(self.top):
            self._say(line("packages", news("installed", packages.ensure(PACKAGES)) or "all there"))
            claim(self.top)
            for name, text in MODULES.items():
                path = self._file(name)
                place.own_folder(self.modules)
                place.own_folder(path.parent)
                if not path.exists() or path.read_text() != f"{text}\n":
                    write_whole(path, f"{text}\n".encode())
            SITE.mkdir(parents=True, exist_ok=True)
            for folder in self._folders():
                link = SITE / folder.name
                if link.is_symlink() and link.readlink() != folder:
                    link.unlink()  # it leads to a bed elsewhere
                if not link.exists():
                    link.symlink_to(folder)
            self._say(line("modules", " ".join(MODULES)))

    def down(self, *, wipe: bool = False) -> None:
        """The packages stay: they start nothing."""
        require_root("taking down the software bed")
        with locked(self.top):
            for folder in self._folders():
                link = SITE / folder.name
                if link.is_symlink() and link.readlink() == folder:
                    link.unlink()
            if wipe:
                place.wipe(self.top)
        self._say(line("software", "modules taken away; the packages stay"))

    def is_up(self) -> bool:
        return not self._missing()

    def status(self) -> list[str]:
        missing = self._missing()
        return [line("modules", f"missing: {', '.join(missing)}" if missing else " ".join(MODULES))]

    def environment(self) -> dict[str, str]:
        """What a login gives on a machine with Lmod: `module` works in every bash that is started from it."""
        return {
            "BASH_ENV": str(INIT),
            "MODULEPATH": f"{SITE}:/usr/share/lmod/lmod/modulefiles/",
            "MODULEPATH_ROOT": "/usr/share/modulefiles",
        }

    def _missing(self) -> list[str]:
        programs = [path for path in (INIT, Path("/usr/bin/mpirun"), Path("/usr/bin/rsync"), Path("/usr/bin/tsp")) if not path.exists()]
        return [str(path) for path in (*programs, *(SITE / f"{name}.lua" for name in MODULES)) if not path.exists()]

    def _file(self, module: str) -> Path:
        return self.modules / f"{module}.lua"

    def _folders(self) -> list[Path]:
        return sorted({self._file(module).parent for module in MODULES})
