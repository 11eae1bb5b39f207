"""`onward doctor`, `tend` and `clean`: arguments and text."""
