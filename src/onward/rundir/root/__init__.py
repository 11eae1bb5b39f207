"""What a root holds beside its run folders: the marks of requests, and the proof that this is the root and not a bare mount point."""
