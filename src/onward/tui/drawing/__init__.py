"""Drawing text without data of its own: the canvas, the frame, charts, timeline, log pane.

Not here: what a screen shows (tui/pages).
"""
