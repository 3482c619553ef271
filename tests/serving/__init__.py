"""Tests of the model server with the real TensorFlow, real sockets and the official client."""
