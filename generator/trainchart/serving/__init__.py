"""Models that are served over TensorFlow Serving's REST API: what they take, and how an example is sent to one."""
