"""The demo: an organization small enough to understand and complete enough to try everything."""
