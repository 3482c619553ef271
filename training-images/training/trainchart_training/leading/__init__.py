"""What the leader does around the steps: evaluate, export, summarize, stop."""
