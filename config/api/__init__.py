"""What every part of the REST API shares: who asks, what a body may be, pages, and how errors read."""
