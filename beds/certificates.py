"""A certificate authority of a bed's own, and the certificate it gave to 127.0.0.1."""

from dataclasses import dataclass
from pathlib import Path

from beds.command import run
from beds.place import own_folder, remove_tree, write_whole

_NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1\n"
_DAYS = "3650"
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True)
class Authority:
    folder: Path

    @property
    def certificate(self) -> Path:
        """What a client trusts."""
        return self.folder / "ca.pem"

    @property
    def server_certificate(self) -> Path:
        return self.folder / "server.pem"

    @property
    def server_key(self) -> Path:
        return self.folder / "server.key"

    def exists(self) -> bool:
        return self.server_certificate.exists()

    def make(self, *, owner: str) -> None:
        """The authority's key is forgotten as soon as it has signed: nothing else can ever be signed by it."""
        making = own_folder(self.folder.with_name(f".{self.folder.name}.partial"), mode=0o700)
        key, request, names = making / "ca.key", making / "request", making / "names"
        names.write_text(_NAMES)
        subject = ("-subj", "/CN=onward bed")
        issued = ("-out", str(making / "ca.pem"), "-keyout", str(key))
        run(["openssl", "req", "-x509", *_KEY, *subject, "-days", _DAYS, *issued])
        run(["openssl", "req", *_KEY, "-subj", "/CN=localhost", "-out", str(request), "-keyout", str(making / "server.key")])
        signed_by = ("-CA", str(making / "ca.pem"), "-CAkey", str(key), "-CAcreateserial", "-extfile", str(names))
        run(["openssl", "x509", "-req", "-in", str(request), *signed_by, "-days", _DAYS, "-out", str(making / "server.pem")])
        own_folder(self.folder, owner=owner)
        for file, mode in ((self.certificate, 0o644), (self.server_key, 0o600), (self.server_certificate, 0o644)):
            write_whole(file, (making / file.name).read_bytes(), owner=owner, mode=mode)
        remove_tree(making)
