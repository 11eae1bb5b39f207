"""TensorBoard event files: framing, scalars, legs, and the tail that follows them. Nothing but scalars is read."""
