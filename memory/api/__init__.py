"""What is known, over HTTP: look and search."""
