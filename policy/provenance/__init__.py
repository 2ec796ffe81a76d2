"""Where the values of a call came from, and what that is worth (docs/provenance.md). Pure."""
