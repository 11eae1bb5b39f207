"""Whole runs in simulated time: the real loop, plan and order of publishing, in a world of simulated nodes, disks and faults."""
