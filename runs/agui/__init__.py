"""AG-UI 1.0: a chat front end asks, follows and decides, at /api/ag-ui/{project}/."""
