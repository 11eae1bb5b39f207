"""What people write: params files, pipelines, flag lines and batch scripts in; drafts of runs and plans out."""
