"""Text drawing without data of its own: the canvas widget, the frame, charts, timeline, log pane. Pure but for the canvas."""
