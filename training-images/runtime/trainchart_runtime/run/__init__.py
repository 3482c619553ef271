"""The run controller's decisions: from what is observed to what is done and recorded."""
