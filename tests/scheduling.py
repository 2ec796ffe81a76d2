"""Which tests stay together when several processes share them."""

from xdist.scheduler import LoadScopeScheduling


class AcceptanceByFile(LoadScopeScheduling):
    """A file of tests/acceptance runs in one process and in order: its tests share a house and a cluster.
    Those files come first, being the longest; every other test goes to whoever is free.
    """

    def _split_scope(self, nodeid: str) -> str:
        file, _, _ = nodeid.partition("::")
        return file if file.startswith("tests/acceptance/") else nodeid
