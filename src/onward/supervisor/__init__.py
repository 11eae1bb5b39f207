"""Our process inside a job: it lives one leg of a run, from claim to end."""
