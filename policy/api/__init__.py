"""Policy's rules over HTTP. What they would say to a call: runs/api."""
