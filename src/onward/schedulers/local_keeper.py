"""What processes of version 0.1 that still live start by this name: `python -m onward.schedulers.local_keeper STATE`."""

from __future__ import annotations

import sys

from onward.schedulers.local.keeper import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
