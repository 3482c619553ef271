"""Images: what goes into one, and how it is called. io/ reads code folders and runs builders; the rest is pure."""
