"""A private MariaDB with one database and one user, for a service that keeps its records there."""

import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from beds.command import run
from beds.daemon import Daemon
from beds.errors import BedError
from beds.place import own_folder, write_whole


@dataclass(frozen=True)
class MariaDB:
    """Everything lies in `folder` and belongs to `account`, which also runs the server."""

    folder: Path
    record: Path
    account: str
    port: int
    database: str

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def password(self) -> str:
        try:
            return (self.folder / "password").read_text().strip()
        except FileNotFoundError:
            raise BedError(f"{self.folder} holds no database yet", hint="prepare() it") from None

    def prepare(self) -> bool:
        """Build an empty database where there is none; True if that was done."""
        own_folder(self.folder, owner=self.account, mode=0o700)
        secret = self.folder / "password"
        if not secret.exists():
            write_whole(secret, secrets.token_hex(16).encode(), owner=self.account, mode=0o600)
        write_whole(self.folder / "init.sql", self._grants().encode(), owner=self.account, mode=0o600)
        if self.data.exists():
            return False
        partial = self.folder / "data.partial"
        shutil.rmtree(partial, ignore_errors=True)  # left by a killed predecessor
        own_folder(partial, owner=self.account, mode=0o700)
        run(
            [
                *("setpriv", f"--reuid={self.account}", f"--regid={self.account}", "--init-groups"),
                *("mariadb-install-db", "--no-defaults", f"--datadir={partial}"),
                *("--skip-test-db", "--skip-name-resolve", "--innodb-log-file-size=16M"),
                *("--auth-root-authentication-method=socket",),
            ],
            timeout=120,
            env={"HOME": str(self.folder)},
        )
        partial.rename(self.data)
        return True

    def daemon(self) -> Daemon:
        return Daemon(
            name="mariadbd",
            argv=(
                "/usr/sbin/mariadbd",
                "--no-defaults",
                f"--datadir={self.data}",
                f"--socket={self.folder / 'socket'}",
                f"--pid-file={self.folder / 'pid'}",
                f"--init-file={self.folder / 'init.sql'}",
                "--bind-address=127.0.0.1",
                f"--port={self.port}",
                "--skip-name-resolve",
                "--performance-schema=OFF",
                "--innodb-buffer-pool-size=64M",
                "--innodb-log-file-size=16M",
                "--innodb-lock-wait-timeout=900",
                "--innodb-flush-log-at-trx-commit=2",  # outlives a killed server, and is quick
                "--max-allowed-packet=16M",
            ),
            record=self.record,
            output=self.folder / "output",
            account=self.account,
            port=self.port,
            patience=20,
        )

    def _grants(self) -> str:
        user = f"'{self.account}'@'127.0.0.1'"
        return (
            f"CREATE DATABASE IF NOT EXISTS {self.database};\n"
            f"CREATE USER IF NOT EXISTS {user} IDENTIFIED BY '{self.password}';\n"
            f"GRANT ALL ON {self.database}.* TO {user};\n"
        )
