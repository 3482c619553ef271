"""The model spec: what an author may write, parsed with positions so that every problem names its line."""
