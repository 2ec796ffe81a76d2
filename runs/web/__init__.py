"""People's own pages: talking to one's agent, answering it, deciding, and what it knows of one."""
