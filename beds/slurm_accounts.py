"""Who may submit: the cluster, its accounts and their users in Slurm's database."""

from collections.abc import Mapping
from dataclasses import dataclass

from beds.command import Outcome, attempt, run
from beds.slurm_layout import ACCOUNTS, CLUSTER


@dataclass(frozen=True)
class Accounts:
    """`environment` points sacctmgr at the bed."""

    environment: Mapping[str, str]

    def answer(self) -> bool:
        """Whether the accounting daemon answers questions."""
        return self._sacctmgr("-n", "show", "cluster").ok

    def ensure(self) -> bool:
        """Have every account and user there; True if something had to be added.

        Root needs no account here: Slurm itself puts it into the account `root`.
        """
        there = set(self._sacctmgr("-nP", "show", "assoc", f"cluster={CLUSTER}", "format=account,user").out.split())
        wanted = {f"{account}|{user}" for user, account in ACCOUNTS.items()} | {"root|root"}
        if wanted <= there:
            return False
        if "root|root" not in there:
            self._add("cluster", CLUSTER)
        for user, account in ACCOUNTS.items():
            if f"{account}|{user}" not in there:
                self._add("account", account, f"cluster={CLUSTER}", "fairshare=1")
                self._add("user", user, f"account={account}", f"cluster={CLUSTER}", "fairshare=1")
        return True

    def limit_jobs(self, user: str, most: int | None) -> None:
        """How many jobs a user may have submitted at once; None: as many as they like."""
        run(["sacctmgr", "-iQ", "modify", "user", user, "set", f"MaxSubmitJobs={-1 if most is None else most}"], env=self.environment)

    def _sacctmgr(self, *words: str) -> Outcome:
        return attempt(["sacctmgr", *words], env=self.environment, timeout=20)

    def _add(self, *words: str) -> None:
        """Add one thing; that it is there already is no error."""
        outcome = self._sacctmgr("-iQ", "add", *words)
        said = outcome.out + outcome.err
        if not outcome.ok and "already exist" not in said and "Nothing new added" not in said:
            run(["sacctmgr", "-iQ", "add", *words], env=self.environment)
