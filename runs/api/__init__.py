"""Runs, approvals and tools over HTTP. Each view calls one action or one query."""
