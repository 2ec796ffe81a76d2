"""Cells: what moves an organization from one installation to another."""
