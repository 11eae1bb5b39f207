"""The ssh bed: a login node on loopback, where alice is known as carol; and one that wants a second factor.

By alice's own ssh configuration: `ssh onward-bed` logs in as carol, who has a home of her own and the
schedulers' commands; `ssh onward-mfa` takes the key and then asks a question, which nobody can answer in batch mode.
"""

import os
import pwd
import subprocess
from pathlib import Path

from beds import packages, place, users
from beds.bed import Say, describe, line, news, say_at_once
from beds.command import run
from beds.daemon import Daemon, listens
from beds.gridengine import GridEngineBed
from beds.place import beds_folder, claim, locked, own_folder, require_root, write_whole
from beds.slurm import SlurmBed

PACKAGES = ("openssh-server", "openssh-client", "rsync")
PORT = 16822
MFA_PORT = 16823
HERE, THERE = "alice", "carol"  # who calls, and as whom
HOST, MFA_HOST = "onward-bed", "onward-mfa"
_BEGIN, _END = "# --- onward-beds", "# --- end of onward-beds"


class SshBed:
    """A real sshd from Debian's package, with keys and a configuration of its own."""

    name = "ssh"
    packages: tuple[str, ...] = PACKAGES
    answers: tuple[str, ...] = ()

    def __init__(self, folder: Path | None = None, *, say: Say = say_at_once) -> None:
        self.top = (folder or beds_folder() / self.name).absolute()
        self._say = say

    @property
    def daemon(self) -> Daemon:
        return Daemon(
            name="sshd",
            argv=("/usr/sbin/sshd", "-D", "-e", "-f", str(self.top / "sshd_config")),
            record=self.top / "sshd.record",
            output=self.top / "sshd.log",
            port=PORT,
        )

    def up(self) -> None:
        if os.geteuid() != 0:
            packages.ensure(PACKAGES)
            if not self.is_up():
                require_root("bringing up the ssh bed")
            return
        with locked(self.top):
            self._say(line("packages", news("installed", packages.ensure(PACKAGES)) or "all there"))
            self._say(line("users", news("created", users.ensure((HERE, THERE))) or "all there"))
            self.daemon.check_port()
            claim(self.top)
            own_folder(Path("/run/sshd"))  # sshd wants it; an init script would have made it
            _key(self.top / "host_key", owner="root")
            own_folder(_home(HERE) / ".ssh", owner=HERE, mode=0o700)
            own_folder(_home(THERE) / ".ssh", owner=THERE, mode=0o700)
            _key(_home(HERE) / ".ssh" / "onward_bed", owner=HERE)
            self._authorise()
            if self._configure():
                self.daemon.stop()
            fresh = self.daemon.start(lambda: listens(PORT) and listens(MFA_PORT))
            self._say(line("sshd", "started" if fresh else "runs"))
        self._say(f"\nThe login node is up: runuser -u {HERE} -- ssh {HOST} hostname")

    def down(self, *, wipe: bool = False) -> None:
        require_root("taking down the ssh bed")
        with locked(self.top):
            ended = self.daemon.stop()
            for name in (HERE, THERE) if wipe else ():
                if users.exists(name):
                    self._forget(name)
            if wipe:
                place.wipe(self.top)
        self._say(line("ssh", "down" if ended else "did not run"))

    def is_up(self) -> bool:
        return self.daemon.running and listens(PORT) and listens(MFA_PORT)

    def status(self) -> list[str]:
        return [line("sshd", describe(self.daemon.process()))]

    def environment(self) -> dict[str, str]:
        """None: alice's own configuration has it all."""
        return {}

    def _authorise(self) -> None:
        """Alice's key opens carol's door, and alice knows the host's key."""
        key = (_home(HERE) / ".ssh" / "onward_bed.pub").read_text().strip()
        _block(_home(THERE) / ".ssh" / "authorized_keys", key, owner=THERE)
        host = " ".join((self.top / "host_key.pub").read_text().split()[:2])
        known = "\n".join(f"[127.0.0.1]:{port} {host}" for port in (PORT, MFA_PORT))
        write_whole(_home(HERE) / ".ssh" / "onward_known_hosts", f"{known}\n".encode(), owner=HERE, mode=0o600)
        _block(_home(HERE) / ".ssh" / "config", client_config(), owner=HERE)

    def _configure(self) -> bool:
        """Write sshd's configuration; True if it has changed."""
        schedulers = {**SlurmBed().environment(), **GridEngineBed().layout.environment}
        path = f"{GridEngineBed().path()}:/usr/local/bin:/usr/bin:/bin"
        text = server_config(self.top, {**schedulers, "PATH": path})
        file = self.top / "sshd_config"
        if file.exists() and file.read_text() == text:
            return False
        write_whole(file, text.encode())
        return True

    def _forget(self, name: str) -> None:
        folder = _home(name) / ".ssh"
        for file in ("authorized_keys", "config"):
            if (folder / file).exists():
                _block(folder / file, "", owner=name)
        for file in ("onward_bed", "onward_bed.pub", "onward_known_hosts"):
            (folder / file).unlink(missing_ok=True)


def server_config(top: Path, environment: dict[str, str]) -> str:
    """No PAM: a key is enough on the first port, and never enough on the second."""
    given = " ".join(f'"{name}={value}"' for name, value in environment.items())
    return f"""\
Port {PORT}
Port {MFA_PORT}
ListenAddress 127.0.0.1
HostKey {top}/host_key
PidFile {top}/sshd.pid
AllowUsers {THERE}
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication yes
AuthenticationMethods publickey
MaxStartups 100
MaxSessions 100
PrintMotd no
Subsystem sftp internal-sftp
SetEnv {given}
Match LocalPort {MFA_PORT}
  AuthenticationMethods publickey,keyboard-interactive
"""


def client_config() -> str:
    hosts = ((HOST, PORT), (MFA_HOST, MFA_PORT))
    return "\n".join(
        f"""\
Host {name}
  HostName 127.0.0.1
  Port {port}
  User {THERE}
  IdentityFile ~/.ssh/onward_bed
  IdentitiesOnly yes
  UserKnownHostsFile ~/.ssh/onward_known_hosts
  StrictHostKeyChecking yes"""
        for name, port in hosts
    )


def with_block(text: str, block: str) -> str:
    """The text with our block at its top, in place of the one that was there; what others wrote stays."""
    kept: list[str] = []
    ours = False
    for row in text.splitlines():
        if row == _BEGIN:
            ours = True
        elif row == _END:
            ours = False
        elif not ours:
            kept.append(row)
    rows = [_BEGIN, block, _END, *kept] if block else kept
    return "".join(f"{row}\n" for row in rows)


def _block(file: Path, block: str, *, owner: str) -> None:
    before = file.read_text() if file.exists() else ""
    after = with_block(before, block)
    if after != before:
        write_whole(file, after.encode(), owner=owner, mode=0o600)


def _key(path: Path, *, owner: str) -> None:
    if not path.exists() or not path.with_suffix(".pub").exists():
        path.unlink(missing_ok=True)
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"onward-beds {owner}", "-f", str(path)])
        for file in (path, path.with_suffix(".pub")):
            subprocess.run(["chown", f"{owner}:{owner}", str(file)], check=True)


def _home(name: str) -> Path:
    return Path(pwd.getpwnam(name).pw_dir)
