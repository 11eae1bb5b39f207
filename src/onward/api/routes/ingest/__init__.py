"""Routes by which jobs, agents and schedulers send: records, pieces of run folders and hints. People use the others."""
