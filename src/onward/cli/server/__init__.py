"""`onward up`, and verbs about the tracker: token, backup, import, sync, epilog. Arguments and text; the server is onward.api."""
