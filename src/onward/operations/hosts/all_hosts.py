"""All hosts that the settings name: this machine, and every ssh host of a profile. Hosts are asked at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

from onward.errors import HostUnreachable, LoginRefused, NotFound, OnwardError
from onward.operations.context import OperationsContext
from onward.operations.hosts.answers import RunMatches
from onward.operations.hosts.local import Host, LocalHost
from onward.operations.remembered_roots import roots_text
from onward.operations.runs.find import best_match, check_text, is_path, run_not_found
from onward.schedulers.cluster_settings import ClusterSettings

if TYPE_CHECKING:
    from onward.operations.ssh.host import RemoteHost

Say = Callable[[str], None]
Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class HostReply(Generic[Answer]):
    """What one host answered, or why it did not."""

    host: Host
    answer: Answer | None
    error: OnwardError | None

    @property
    def name(self) -> str:
        return self.host.hostname or "here"


@dataclass(frozen=True, kw_only=True)
class LocatedRun:
    """A run, and the host where its folder is."""

    host: Host
    run: str  # its folder there


class Hosts:
    """`say` gets what is worth telling beside an answer: a host that is silent, code that is carried in another way."""

    def __init__(self, context: OperationsContext, say: Say) -> None:
        self.context = context
        self.here = LocalHost(context)
        self._say = say

    @cached_property
    def remotes(self) -> list[RemoteHost]:
        """One for each host: profiles that share one are asked together."""
        by_host: dict[str, list[ClusterSettings]] = {}
        for profile in self.context.settings.clusters.values():
            if profile.ssh:
                by_host.setdefault(profile.ssh, []).append(profile)
        if not by_host:
            return []
        from onward.operations.ssh.host import RemoteHost  # only who has a host to reach waits for it to be loaded

        return [RemoteHost(self.context, host, profiles, say=self._say) for host, profiles in by_host.items()]

    @property
    def all(self) -> list[Host]:
        return [self.here, *self.remotes]

    def host_of(self, cluster: str) -> tuple[Host, str]:
        """Where runs of this cluster go, and its name; `auto` is settled here, not there."""
        profile = self.context.settings.cluster(cluster)[1]
        for remote in self.remotes:
            if remote.hostname == profile.ssh:
                return remote, profile.name
        return self.here, cluster

    def ask(self, hosts: Sequence[Host], question: Callable[[Host], Answer]) -> list[HostReply[Answer]]:
        """All at once. One that does not answer does not spoil the others' answers; what is wrong here is raised."""
        replies: dict[int, HostReply[Answer]] = {}

        def far(index: int) -> None:
            try:
                replies[index] = HostReply(host=hosts[index], answer=question(hosts[index]), error=None)
            except OnwardError as error:
                replies[index] = HostReply(host=hosts[index], answer=None, error=error)
            except Exception as error:  # a thread has nobody to tell
                fault = OnwardError(f"internal error: {type(error).__name__}: {error}")
                replies[index] = HostReply(host=hosts[index], answer=None, error=fault)

        threads = [threading.Thread(target=far, args=(n,), daemon=True) for n, host in enumerate(hosts) if host.hostname]
        for thread in threads:
            thread.start()
        replies |= {n: HostReply(host=host, answer=question(host), error=None) for n, host in enumerate(hosts) if not host.hostname}
        for thread in threads:
            thread.join()
        return [replies[n] for n in range(len(hosts))]

    def find(self, text: str, *, acting: bool = False) -> LocatedRun:
        """The one run that a person means. To act on one, a host that did not answer must not have another of that name."""
        check_text(text)
        hosts, text = self._narrowed(text)
        if self.here in hosts:
            mine = self.here.matches(text=text)
            exact = [match for match in mine.matches if match.id == text]
            if (is_path(text) and mine.matches) or len(exact) == 1 or not self.remotes:
                return self._best(text, [HostReply(host=self.here, answer=mine, error=None)])
        return self._best(text, self.ask(hosts, lambda host: host.matches(text=text)), acting=acting)

    def _narrowed(self, text: str) -> tuple[list[Host], str]:
        """`HOST:/folder`, as we print it ourselves, names its host."""
        host, colon, folder = text.partition(":")
        for remote in self.remotes:
            if colon and host in (remote.hostname, *remote.names) and folder:
                return [remote], folder
        return self.all, text

    def _best(self, text: str, replies: list[HostReply[RunMatches]], *, acting: bool = False) -> LocatedRun:
        found = [match for reply in replies if reply.answer for match in reply.answer.matches]
        silent = [reply for reply in replies if reply.error]
        if not found:
            if silent and len(silent) == 1 == len(replies):
                assert silent[0].error
                raise silent[0].error
            raise self._missing(text, replies, silent)
        match = best_match(text, found)
        for reply in silent:
            assert reply.error
            if acting and match.id != text:
                raise HostUnreachable(
                    f"{text!r} may mean a run on {reply.name} too, which did not answer: {reply.error.message}",
                    hint=f"use its full id: {match.id}",
                )
            self._say(f"onward: did not look for {text!r} on {reply.name}: {reply.error.message}")
        return LocatedRun(host=next(host for host in self.all if host.hostname == match.host), run=match.folder)

    def _missing(self, text: str, replies: list[HostReply[RunMatches]], silent: list[HostReply[RunMatches]]) -> OnwardError:
        where = [root for reply in replies if reply.answer for root in reply.answer.roots]
        if silent:
            named = "; ".join(f"{reply.name}: {reply.error.message}" for reply in silent if reply.error)
            hint = next((reply.error.hint for reply in silent if reply.error and reply.error.hint), "")
            kind = LoginRefused if all(isinstance(reply.error, LoginRefused) for reply in silent) else HostUnreachable
            return kind(f"there is no run {text!r} under {roots_text(where)}, and not all hosts answered: {named}", hint=hint)
        if is_path(text):
            host, colon, folder = text.partition(":")
            if colon and folder.startswith(("/", "~")) and "/" not in host:
                hint = f"to look there, add it to the settings: [clusters.NAME] with ssh = {host!r}"
                return NotFound(f"{host} is not the host of any profile here, so Onward did not look for {folder} there", hint=hint)
            return NotFound(f"{text} is not a run's folder", hint="`onward runs` lists the runs")
        near = [name for reply in replies if reply.answer for name in reply.answer.near]
        return run_not_found(text, near=near[:1], where=where)
