"""Rules, capabilities and standing approvals over HTTP. What policy would decide: runs/api."""
