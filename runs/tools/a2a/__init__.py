"""Agents of others, asked over A2A 1.0: their cards, their tasks, and the tool that gives them one."""
