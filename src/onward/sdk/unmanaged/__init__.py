"""A training that nobody submitted: its folder, and how its process ended. What a supervisor does in a job has no place here."""
