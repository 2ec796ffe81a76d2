"""Webhooks by the Standard Webhooks scheme: what is told (`outbox`), how (`signing`) and when (`sending`)."""
