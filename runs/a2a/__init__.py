"""A2A 1.0: projects and groups as agents of other agents, at /a2a/. A task is a run."""
