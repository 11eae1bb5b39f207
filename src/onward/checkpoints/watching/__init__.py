"""Whether a checkpoint that was written without the SDK is complete.

Not here: copying it anywhere (publishing).
"""
