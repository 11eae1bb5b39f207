"""What can run a job: this machine, Slurm. One small Protocol, thin adapters."""
