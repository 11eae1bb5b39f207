"""The archive that is carried to a host: what the verbs need of Onward, named by its content, so that it is carried once."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from dataclasses import dataclass
from functools import cached_property

from onward.rundir.freeze import MODULES, ROOMS, Sources, pack, sources
from onward.schedulers.plugins import all_plugin_files

_ROOMS = (*ROOMS, "operations", "inputs")  # of these two, what needs no package is used there
OLD_PYTHON = 86  # exit code of the front door where Python is too old

# Any Python must be able to read this: it is what tells that it is too old.
_FRONT_DOOR = f"""\
import sys
if sys.version_info < (3, 11):
    sys.stderr.write("onward: this is Python %d.%d at %s\\n" % (sys.version_info[0], sys.version_info[1], sys.executable))
    sys.exit({OLD_PYTHON})
if sys.argv[1:2] == ["agent"]:
    from onward.operations.ssh.agent import main
    sys.exit(main())
from onward.supervisor.entry import main
sys.exit(main(sys.argv[1:]))
"""


@dataclass(frozen=True)
class AgentArchive:
    modules: Sources

    @cached_property
    def name(self) -> str:
        """By what is in it: the modules, and the Python that they are compiled for."""
        digest = hashlib.sha256(f"{sys.implementation.cache_tag}\n{_FRONT_DOOR}".encode())
        for name, text in sorted(self.modules.items()):
            digest.update(f"{name} {len(text)}\n".encode() + text)
        return f"agent-{digest.hexdigest()[:16]}.pyz"

    def build(self) -> bytes:
        return pack(_FRONT_DOOR, self.modules, compression=zipfile.ZIP_DEFLATED)


def agent_archive() -> AgentArchive:
    return AgentArchive({**sources(rooms=_ROOMS, modules=MODULES), **all_plugin_files()})
