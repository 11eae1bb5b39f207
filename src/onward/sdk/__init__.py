"""What a training script imports: standard library only, and it works when nothing else is there."""
