"""What is known, over HTTP: look, search, write and curate."""
