"""Every option of sbatch, of Slurm 22.05 to 24.11, and what becomes of it."""

from __future__ import annotations

from onward.inputs.scripts.option_table import read_table

OPTIONS = read_table("""
--account              -A  one    taken      account to charge
--acctg-freq           .   one    handed-on
--array                -a  one    taken      in a batch script: each task becomes a run of its own. `%4` is refused, since no task waits
    for another: submit a part of the array at a time
--batch                .   one    handed-on
--bb                   .   one    handed-on
--bbf                  .   one    handed-on
--begin                -b  one    refused    every leg would wait again; leave it out, and submit when it may begin, as in `echo "onward
    submit …" | at 20:00`
--chdir                -D  one    taken      in a batch script: where it starts. A command starts in the folder it is submitted from
--cluster-constraint   .   one    handed-on
--clusters             -M  one    refused    a run stays on one cluster: choose it by --cluster and a profile
--comment              .   one    handed-on
--consolidate-segments .   none   handed-on
--constraint           -C  one    taken      node features
--container            .   one    handed-on
--container-id         .   one    handed-on
--context              .   one    handed-on
--contiguous           .   none   handed-on
--core-spec            -S  one    handed-on
--cores-per-socket     .   one    handed-on
--cpu-freq             .   one    handed-on
--cpus-per-gpu         .   one    handed-on
--cpus-per-task        -c  one    taken      CPUs a task
--deadline             .   one    handed-on  it counts for each leg
--delay-boot           .   one    handed-on
--dependency           -d  one    refused    Onward itself queues the legs of a run, one after another; leave it out, and submit
    when the other job is done. Runs that follow each other are the stages of a pipeline
--distribution         -m  one    handed-on
--error                -e  one    taken      in a batch script: file for its standard error. A command's output is in the run's logs:
    `onward logs`
--exclude              -x  one    taken      nodes not to use
--exclusive            .   maybe  handed-on
--export               .   one    taken      which variables of your shell the run gets
--export-file          .   one    refused    its file need not be there for later legs; give the variables by --env, or write them into
    the script
--extra                .   one    handed-on
--extra-node-info      -B  one    handed-on
--get-user-env         .   maybe  handed-on
--gid                  .   one    refused    a run belongs to whoever submits it
--gpu-bind             .   one    handed-on
--gpu-freq             .   one    handed-on
--gpus                 -G  one    taken      GPUs of a leg
--gpus-per-node        .   one    handed-on
--gpus-per-socket      .   one    handed-on
--gpus-per-task        .   one    handed-on
--gres                 .   one    taken      generic resources
--gres-flags           .   one    handed-on
--help                 -h  none   refused    this belongs on sbatch's own command line; `onward submit --help` lists the flags of Onward
--hint                 .   one    handed-on
--hold                 -H  none   refused    every leg would be held; leave it out, and submit when the run may start
--ignore-pbs           .   none   left-out   #PBS lines are not read
--input                -i  one    refused    a run has no stdin; write < FILE after the command in a script
--job-name             -J  one    taken      name of the run
--kill-on-invalid-dep  .   one    handed-on
--licenses             -L  one    handed-on
--mail-type            .   one    taken      when Slurm mails; for each leg
--mail-user            .   one    taken      whom Slurm mails
--mcs-label            .   one    handed-on
--mem                  .   one    taken      memory a node
--mem-bind             .   one    handed-on
--mem-per-cpu          .   one    handed-on  it goes when memory is raised after a leg ran out of it
--mem-per-gpu          .   one    handed-on  it goes when memory is raised after a leg ran out of it
--mincpus              .   one    handed-on
--network              .   one    handed-on
--nice                 .   maybe  handed-on
--no-kill              -k  maybe  handed-on
--no-requeue           .   none   left-out   Onward sets it: the next leg is queued already
--nodefile             -F  one    refused    later legs are not queued from this folder; name the hosts by --nodelist
--nodelist             -w  one    taken      nodes to use
--nodes                -N  one    taken      nodes of a leg
--ntasks               -n  one    taken      tasks of a leg
--ntasks-per-core      .   one    handed-on
--ntasks-per-gpu       .   one    handed-on
--ntasks-per-node      .   one    taken      tasks a node
--ntasks-per-socket    .   one    handed-on
--oom-kill-step        .   maybe  handed-on
--open-mode            .   one    taken      in a batch script: append or truncate, for its output files
--output               -o  one    taken      in a batch script: file for its output. A command's output is in the run's logs: `onward logs`
--overcommit           -O  none   handed-on
--oversubscribe        -s  none   handed-on
--parsable             .   none   left-out   the run's id is the one line on stdout; `--json` prints more
--partition            -p  one    taken      partition
--power                .   one    handed-on
--prefer               .   one    handed-on
--priority             .   one    handed-on
--profile              .   one    handed-on
--propagate            .   maybe  handed-on
--qos                  -q  one    taken      quality of service
--quiet                -Q  none   left-out   what is said stands on stderr
--reboot               .   none   handed-on
--requeue              .   maybe  noted      not passed on; Onward itself queues the legs of a run, one after another, also after
    preemption or a lost node
--reservation          .   one    taken      reservation
--segment              .   one    handed-on
--signal               .   one    taken      signal before the end of a leg: for a batch script as sbatch sends it, for a command to the
    training
--sockets-per-node     .   one    handed-on
--spread-job           .   none   handed-on
--spread-segments      .   none   handed-on
--stepmgr              .   none   handed-on
--switches             .   one    handed-on
--test-only            .   none   refused    `onward submit --dry-run` shows what would be queued, and when it is expected to start
--thread-spec          .   one    handed-on
--threads-per-core     .   one    handed-on
--time                 -t  one    taken      limit of one leg
--time-min             .   one    handed-on  it counts for each leg
--tmp                  .   one    handed-on
--tres-bind            .   one    handed-on
--tres-per-task        .   one    handed-on
--uid                  .   one    refused    a run belongs to whoever submits it
--usage                .   none   refused    this belongs on sbatch's own command line; `onward submit --help` lists the flags of Onward
--use-min-nodes        .   none   handed-on
--verbose              -v  none   left-out   `onward show` tells what happened
--version              -V  none   refused    this belongs on sbatch's own command line; `onward --version` prints Onward's
--wait                 -W  none   noted      not passed on; `onward run` instead of `onward submit` follows a run to its end
--wait-all-nodes       .   one    handed-on
--wckey                .   one    handed-on
--wrap                 .   one    refused    write the command after --, as in onward submit -- sh -c 'COMMAND'
""")
