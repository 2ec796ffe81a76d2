"""Policy over HTTP: the rules, and what they would say."""
