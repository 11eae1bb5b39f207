"""Every option of qsub, of Grid Engine 8.1.9 and its relatives, and what becomes of it."""

from __future__ import annotations

from onward.inputs.scripts.option_table import read_table

OPTIONS = read_table("""
-@            .  one    refused    a file of options is not read; write them out
-a            .  one    refused    every leg would wait again; leave it out, and submit when it may begin, as in `echo "onward submit …" |
    at 20:00`
-A            .  one    handed-on
-ac           .  one    handed-on
-adds         .  one    handed-on
-ar           .  one    handed-on
-b            .  one    refused    a batch script is a script, and a program is written after --, as in onward submit -- ./program
-binding      .  two    handed-on
-c            .  one    noted      not passed on; Onward itself queues the legs of a run, one after another, also after a lost host
-C            .  one    refused    only lines that begin with #$ are read
-ckpt         .  one    noted      not passed on; Onward itself queues the legs of a run, one after another, also after a lost host
-cl           .  one    handed-on
-clear        .  none   left-out   Onward begins without options
-clearp       .  one    handed-on
-clears       .  one    handed-on
-cwd          .  none   taken      it starts in the folder it is submitted from
-dc           .  one    handed-on
-dl           .  one    handed-on
-dul          .  one    handed-on
-e            .  one    taken      in a batch script: file for its standard error. A command's output is in the run's logs: `onward logs`
-h            .  none   refused    every leg would be held; leave it out, and submit when the run may start
-hard         .  none   handed-on
-help         .  none   refused    this belongs on qsub's own command line; `onward submit --help` lists the flags of Onward
-hold_jid     .  one    refused    Onward itself queues the legs of a run, one after another; leave it out, and submit when the
    other job is done. Runs that follow each other are the stages of a pipeline
-hold_jid_ad  .  one    refused    Onward itself queues the legs of a run, one after another; leave it out, and submit when the
    other job is done. Runs that follow each other are the stages of a pipeline
-i            .  one    refused    a run has no stdin; write < FILE after the command in a script
-inherit      .  none   handed-on
-j            .  one    taken      in a batch script: whether both streams go to one file
-jc           .  one    handed-on
-js           .  one    handed-on
-jsv          .  one    handed-on
-l            .  one    taken      resources: `h_rt` is the limit of one leg, `s_rt` the time of a signal before it; the others are
    handed on
-m            .  one    handed-on  for each leg
-M            .  one    handed-on
-masterl      .  one    handed-on
-masterq      .  one    handed-on
-mbind        .  one    handed-on
-mods         .  one    handed-on
-N            .  one    taken      name of the run
-noshell      .  none   handed-on
-nostdin      .  none   handed-on
-notify       .  none   taken      SIGUSR2 a minute before the end of a leg
-now          .  one    refused    a leg that must start at once or never breaks the chain; leave it out
-o            .  one    taken      in a batch script: file for its output. A command's output is in the run's logs: `onward logs`
-p            .  one    handed-on
-P            .  one    handed-on
-par          .  one    handed-on
-pe           .  two    handed-on
-pty          .  one    handed-on
-q            .  one    handed-on
-r            .  one    left-out   Onward sets it: the next leg is queued already
-R            .  one    handed-on
-rdi          .  one    handed-on
-rou          .  one    handed-on
-S            .  one    taken      in a batch script: the shell that runs it
-sc           .  one    handed-on
-shell        .  one    left-out   a leg's script is for bash
-si           .  one    handed-on
-soft         .  none   handed-on
-sync         .  one    noted      not passed on; `onward run` instead of `onward submit` follows a run to its end
-t            .  one    taken      in a batch script: each task becomes a run of its own
-tc           .  one    refused    each task becomes a run of its own, and none waits for another; leave it out, and submit a part of the
    tasks at a time
-tcon         .  one    handed-on
-terse        .  none   left-out   the run's id is the one line on stdout; `--json` prints more
-umask        .  one    handed-on
-v            .  one    taken      variables of the run
-V            .  none   taken      the run gets all variables of your shell
-verify       .  none   refused    `onward submit --dry-run` shows what would be queued
-version      .  none   refused    this belongs on qsub's own command line; `onward --version` prints Onward's
-w            .  one    handed-on
-wd           .  one    taken      in a batch script: where it starts. A command starts in the folder it is submitted from
-xd           .  one    handed-on
""")
