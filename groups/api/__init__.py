"""Groups, roles and projects over HTTP."""
