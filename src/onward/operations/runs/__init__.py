"""One run that is there: find it, its record, its logs, watching it, cancelling, stopping, resuming.

Making one lives in submit/, repairing it in repair/.
"""
