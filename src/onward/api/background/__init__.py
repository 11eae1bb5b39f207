"""What the server does beside answering: its chores, their threads and the list of live events. No routes."""
