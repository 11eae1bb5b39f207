"""The params file: YAML in, RunSpec out."""
