"""`python -m trawl`: the command line."""

from trawl.cli import main

main()
