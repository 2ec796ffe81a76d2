"""A package outside Deputy that brings a tool, a check of it, and a model provider."""
