"""The check rules, grouped by what they look at. Each is a pure function from CheckInput to findings."""
