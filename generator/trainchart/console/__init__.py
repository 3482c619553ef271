"""The web page about runs: what it shows is decided here, and served by io/. Pure, except for io/."""
