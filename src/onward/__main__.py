"""`python -m onward` is the command `onward`."""

from onward.cli.main import main

main()
