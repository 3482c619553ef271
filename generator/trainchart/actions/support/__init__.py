"""What several commands share, and what one command does not do alone."""
