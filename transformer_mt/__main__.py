"""`python -m transformer_mt` is the same program as the `transformer-mt` command."""

from transformer_mt.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
