"""`onward pipeline …`: plan, run and the rest, summary. Arguments and text; the work is in operations.pipelines."""
