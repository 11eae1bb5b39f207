"""What scripts written for W&B use beside log() (`import onward as wandb`): config, artifacts, media, the module's names.

Loaded when used; standard library only.
"""
