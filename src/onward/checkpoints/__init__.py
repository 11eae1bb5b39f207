"""Checkpoints as whole, verified directories: manifest, publish, find, retain, stage."""
