"""The parts of W&B's interface beyond log(), for `import onward as wandb`. Loaded on first use; standard library only.

Not here: a client for W&B's servers.
"""
