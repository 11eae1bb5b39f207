"""The machine's own slurm.conf, by which plain commands find a cluster."""

from pathlib import Path

SITE_CONF = Path("/etc/slurm/slurm.conf")


def link(conf: Path) -> bool:
    """Make it lead to the bed, unless the machine has one already; True if it is the bed's."""
    if SITE_CONF.is_symlink() and not SITE_CONF.exists():
        SITE_CONF.unlink()  # it leads nowhere: to a bed that was deleted by hand
    if not SITE_CONF.exists():
        SITE_CONF.parent.mkdir(exist_ok=True)
        SITE_CONF.symlink_to(conf)
    return SITE_CONF.samefile(conf)


def unlink(conf: Path) -> None:
    """Take the link away if it leads to the bed."""
    if SITE_CONF.is_symlink() and SITE_CONF.readlink() == conf:
        SITE_CONF.unlink()
