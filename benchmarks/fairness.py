"""What others notice of an organization with thousands of slow calls, and of models and receivers that hang.

    python -m benchmarks.fairness [--calls 1000] [--times 10]

`make run` with its defaults, one model server. Measured without any load (the floor), then while organization
A has `calls` calls under way and as many more queued: how soon a run of organization B asks its model (the
same that A's calls go to), how soon an approved mail of B arrives, how soon a cancel of a run of A closes its
connection, how long a page of the admin takes, how soon a streamed word reaches who follows a run of B. Then
how long runs of B take beside ten models and ten receivers of webhooks that hang, and without. The last line
is JSON; times are the median and the 95th percentile, in milliseconds.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from benchmarks import harness
from benchmarks.capacity import Installation, model_server, told_by
from tests.ports import free_port

SLOW = 3000.0  # seconds: longer than the benchmark takes
SECRET = "only-for-benchmarks-" + "0123456789" * 4
RECEIVERS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--times", type=int, default=10)
    asked = parser.parse_args()
    mail, receivers = free_port(), [free_port() for _ in range(RECEIVERS)]
    more = {
        "SECRET_KEY": SECRET,
        "EMAIL_URL": f"smtp://127.0.0.1:{mail}",
        "WEBHOOK_ALLOW": ",".join(f"127.0.0.1:{port}" for port in receivers),
        "ORGANIZATION_CALLS": str(asked.calls),
        "MODEL_SECONDS": str(int(SLOW)),
        "RUN_SECONDS": "7200",
        "API_PER_MINUTE": "0",
    }
    module = [sys.executable, "-m", "benchmarks.fairness_ours"]
    with (
        harness.server() as admin_url,
        model_server(SLOW) as model_url,
        tempfile.TemporaryDirectory() as home,
    ):
        url = harness.database(admin_url, "ours")
        about = told_by([*module, "prepare", url, *map(str, receivers)], harness.environment(url) | more)
        installation = Installation(url, model_url, Path(home), **more)
        try:
            arguments = [json.dumps(about), str(installation.port), model_url, str(mail), str(asked.calls)]
            told = told_by(
                [*module, "work", *arguments, str(asked.times), *map(str, receivers)],
                installation.environment | {"DJANGO_SETTINGS_MODULE": "config.settings"},
            )
        finally:
            installation.stop()
    for name, found in told.items():
        print(name, found)
    print(f"load average: {os.getloadavg()[0]:.1f}")
    print(json.dumps({"bench": "fairness", "calls": asked.calls, **told, "peers": {}}))


if __name__ == "__main__":
    main()
