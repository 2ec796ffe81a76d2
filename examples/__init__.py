"""Agents of other makes under the gate of Deputy."""
