"""`python -m adapters.cli`: the command line without its script, for servers that this one starts."""

from adapters.cli.main import main

main()
