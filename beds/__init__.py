"""Test beds: real schedulers and services on one bare Debian machine.

Each bed brings up the programs that clusters run (not stand-ins), breaks them on request,
and takes them away again. ``python3 -m beds --help`` lists what can be done.
"""
