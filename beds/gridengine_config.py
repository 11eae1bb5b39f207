"""What the bed's Grid Engine is told: files before the start, objects by qconf after it. Texts only."""

from collections.abc import Mapping, Sequence

from beds.gridengine_layout import ADMIN, ENVIRONMENTS, EXECD_PORT, MASTER, MASTER_PORT, PROJECT, QUEUES, Host, Layout, Queue

# In place of the defaults, so that tests need not wait (facts on Grid Engine: the flush_ values do the work).
SCHEDULER = {
    "schedule_interval": "0:0:1",
    "flush_submit_sec": "1",
    "flush_finish_sec": "1",
    "schedd_job_info": "true",
    "queue_sort_method": "seqno",
    "job_load_adjustments": "NONE",
    "load_adjustment_decay_time": "0:0:0",
    "maxujobs": "0",
}

COMPLEXES = {
    "gpus": "gpus gpus INT <= YES JOB 0 0",  # counted once a job, however many slots it has
    "gpu_c": "gpu_c gpu_c DOUBLE <= YES NO 0 0",  # compute capability: at least
    "h_vmem": "h_vmem h_vmem MEMORY <= YES YES 16G 0",  # a slot's; with 0 for those who ask for none, they would get 10 MiB
}


def bootstrap(layout: Layout) -> str:
    pairs = {
        "admin_user": ADMIN,
        "default_domain": "none",
        "ignore_fqdn": "true",
        "spooling_method": "berkeleydb",
        "spooling_lib": "libspoolb",
        "spooling_params": str(layout.database),
        "binary_path": str(layout.root / "bin"),
        "qmaster_spool_dir": str(layout.master_spool),
        "security_mode": "none",
        "listener_threads": "2",
        "worker_threads": "2",
        "scheduler_threads": "1",
        "jvm_threads": "0",
    }
    return _lines(pairs)


def aliases(master: str, own_names: Sequence[str]) -> str:
    """Every name this machine may be found under is the master's; the first of a line wins."""
    return " ".join(dict.fromkeys([master, MASTER, *own_names, "localhost"])) + "\n"


def settings(layout: Layout) -> str:
    """For people and job scripts: what a site has users source."""
    exports = "".join(f"export {name}={value}\n" for name, value in layout.environment.items())
    return exports + f"export PATH={layout.root}/bin/lx-amd64:$PATH\n"


def configuration(layout: Layout) -> dict[str, str]:
    """What differs from Debian's global configuration."""
    return {
        "execd_spool_dir": str(layout.execd_spool),
        "mailer": "/bin/true",
        "load_report_time": "00:00:01",
        "max_unheard": "00:00:15",
        "reschedule_unknown": "00:00:05",
        "enforce_user": "auto",
        "reporting_params": "accounting=true reporting=false flush_time=00:00:01 accounting_flush_time=00:00:00 "
        "joblog=false sharelog=00:00:00",
        "execd_params": "PDC_INTERVAL=1",
        "finished_jobs": "100",
    }


def changed(dump: str, wanted: Mapping[str, str]) -> str:
    """A dump of `name value` lines with some values put in place."""
    kept = [row for row in dump.splitlines() if row and not row.startswith("#") and row.split()[0] not in wanted]
    return "\n".join(kept) + "\n" + _lines(wanted)


def complexes(dump: str) -> str:
    kept = [row for row in dump.splitlines() if row and not row.startswith("#") and row.split()[0] not in COMPLEXES]
    return "\n".join([*kept, *COMPLEXES.values()]) + "\n"


def host(host: Host) -> str:
    return _lines(
        {
            "hostname": host.name,
            "load_scaling": "NONE",
            "complex_values": host.complexes,
            "user_lists": "NONE",
            "xuser_lists": "NONE",
            "projects": "NONE",
            "xprojects": "NONE",
            "usage_scaling": "NONE",
            "report_variables": "NONE",
        }
    )


def host_configuration(host: Host) -> str:
    """An execd signals and kills by the group it gave a job, and these hosts see one another's processes: each needs groups of its own."""
    first = 20000 + 100 * host.number
    return _lines({"gid_range": f"{first}-{first + 99}"})


def parallel_environment(name: str) -> str:
    return _lines(
        {
            "pe_name": name,
            "slots": "999",
            "user_lists": "NONE",
            "xuser_lists": "NONE",
            "start_proc_args": "NONE",
            "stop_proc_args": "NONE",
            "allocation_rule": ENVIRONMENTS[name],
            "control_slaves": "FALSE" if name == "smp" else "TRUE",  # TRUE: qrsh -inherit may start tasks
            "job_is_first_task": "TRUE" if name == "smp" else "FALSE",
            "urgency_slots": "min",
            "accounting_summary": "TRUE",
            "qsort_args": "NONE",
        }
    )


def project() -> str:
    return _lines({"name": PROJECT, "oticket": "0", "fshare": "0", "acl": "NONE", "xacl": "NONE"})


def queue(template: str, queue: Queue, hosts: Sequence[Host]) -> str:
    """The template's queue as this bed has it, on those of its hosts that there are."""
    names = [host.name for host in hosts if host.name in queue.hosts]
    return changed(
        template,
        {
            "qname": queue.name,
            "hostlist": " ".join(names) or "NONE",
            "seq_no": queue.sequence if len(hosts) > 1 else queue.sequence.partition(",")[0],
            "slots": "8",
            "pe_list": " ".join(ENVIRONMENTS),
            "shell": "/bin/bash",
            "load_thresholds": "NONE",
            "notify": queue.notify,
            "h_rt": queue.h_rt,
            "h_core": "0",
            "rerun": "FALSE",
            "tmpdir": "/tmp",
        },
    )


def everything(layout: Layout) -> str:
    """All of the above as one text, to tell whether something has changed."""
    parts = [
        bootstrap(layout),
        _lines(configuration(layout)),
        _lines(SCHEDULER),
        _lines(COMPLEXES),
        *(host(one) + host_configuration(one) for one in layout.hosts),
        *(parallel_environment(name) for name in ENVIRONMENTS),
        project(),
        *(queue("", one, layout.hosts) for one in QUEUES),
        f"{MASTER_PORT} {EXECD_PORT} {[one.name for one in layout.hosts if one.submits]}",
    ]
    return "\n".join(parts)


def _lines(pairs: Mapping[str, str]) -> str:
    return "".join(f"{name} {value}\n" for name, value in pairs.items())
