"""Looking at the run's folder while a leg trains, at a price that shared storage can bear: see `folder`."""
