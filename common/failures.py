"""What other people's code, a provider or a tool, may raise without it being the end of the worker."""

import asyncio

# An SDK that runs a loop of its own may leak what cancelled its task, and what was written for a terminal
# calls sys.exit for a wrong argument. Nothing of Deputy's ends a worker by either.
FAILURES = (Exception, asyncio.CancelledError, SystemExit)
