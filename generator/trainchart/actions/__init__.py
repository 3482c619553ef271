"""Use cases: the only place where deciding code meets acting code. One module per command."""
