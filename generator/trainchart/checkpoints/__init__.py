"""What lies in a folder of checkpoints: read from names, sizes, markers and TensorFlow's own indexes. Pure."""
