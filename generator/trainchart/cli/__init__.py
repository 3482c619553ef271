"""The command line: parse, call one action, print. Nothing is decided or done here."""
