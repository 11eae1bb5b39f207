"""What a site imposes on jobs: how many may be submitted, how long the notice before a kill is, and limits that an admin moved."""
