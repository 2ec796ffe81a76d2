"""How much the tests notice: mutants of the modules that decide, and which of them the tests kill."""
