"""The gateway store of requests and of what goes back for them, apart from the tables of the tracker. The broker is not known here."""
