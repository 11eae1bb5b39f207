"""A pipeline's folder: its layout, its benchmark tasks and their attempts, one writer a file. Who runs them is in onward.pipelines."""
