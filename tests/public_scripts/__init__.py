"""Scripts of the shapes that people have already, run as they are."""
