"""A private munged: by its key and socket a bed's Slurm daemons and commands trust each other."""

import secrets
from dataclasses import dataclass
from pathlib import Path

from beds.daemon import Daemon
from beds.place import own_folder, write_whole

ACCOUNT = "munge"


@dataclass(frozen=True)
class Munge:
    folder: Path
    record: Path

    @property
    def socket(self) -> Path:
        return self.folder / "socket"

    def prepare(self) -> None:
        """Make the folder and, once, the key. Everybody must reach the socket, nobody the key."""
        own_folder(self.folder, owner=ACCOUNT)
        key = self.folder / "key"
        if not key.exists():
            write_whole(key, secrets.token_bytes(128), owner=ACCOUNT, mode=0o400)

    def daemon(self) -> Daemon:
        return Daemon(
            name="munged",
            argv=(
                "/usr/sbin/munged",
                "--foreground",
                "--force",  # the state folder may lie under a group-writable one
                "--num-threads=2",
                f"--socket={self.socket}",
                f"--key-file={self.folder / 'key'}",
                f"--log-file={self.folder / 'log'}",
                f"--pid-file={self.folder / 'pid'}",
                f"--seed-file={self.folder / 'seed'}",
            ),
            record=self.record,
            output=self.folder / "output",
            log=self.folder / "log",
            account=ACCOUNT,
        )
