"""What an older run's frozen uploader starts by this name: `python -m onward.operations.pipeline_summary PIPELINE_FOLDER`."""

from __future__ import annotations

import sys

from onward.operations.pipelines.summary import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
