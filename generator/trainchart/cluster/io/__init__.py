"""Acts: reads the kubeconfig and calls the Kubernetes API."""
