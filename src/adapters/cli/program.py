"""`python -m adapters.cli.program`: the command line without its script, for servers that this one starts."""

from adapters.cli.main import main

if __name__ == "__main__":
    main()
