"""`make chart`: what the Helm chart renders, kept in tests/data/chart.yaml and checked against the schemas.

    python -m tests.chart [--check]

Needs requirements-chart.txt, in an environment of its own. Without it, the digest in the first line still
says whether the chart has been changed since it was rendered.
"""

import hashlib
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CHART = ROOT / "deploy" / "chart"
KEPT = ROOT / "tests" / "data" / "chart.yaml"
OLDEST, NEWEST = "1.27", "1.37"  # releases of Kubernetes whose schemas it has to fit
VALUES: dict[str, Any] = {
    "existingSecret": "deputy",
    "image": {"repository": "registry.example.com/deputy", "digest": "sha256:" + "0" * 64},
    "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "deputy-tls"},
    "networkPolicy": {"webTo": [{"to": [{"ipBlock": {"cidr": "10.0.0.5/32"}}], "ports": [{"port": 5432}]}]},
}
PLAIN: dict[str, Any] = {"existingSecret": "deputy", "scaling": False, "networkPolicy": {"enabled": False}}


def digest() -> str:
    """Of all files of the chart."""
    files = sorted(path for path in CHART.rglob("*") if path.is_file())
    told = b"\0".join(str(path.relative_to(CHART)).encode() + b"\0" + path.read_bytes() for path in files)
    return hashlib.sha256(told).hexdigest()


def rendered(values: dict[str, Any]) -> str:
    """The chart with these values, as one file of YAML; each part checked against the schemas."""
    import helm_python as helm
    import kubernetes_validate
    import yaml

    found = helm.lint(str(CHART), values)
    wrong = [message for message in found["messages"] if message["severity"] > 1]
    if wrong or found["errors"]:
        raise SystemExit(f"{wrong} {found['errors']}")
    manifests = helm.Chart.load(str(CHART)).render(values, name="deputy", namespace="deputy")
    parts = [
        part for name in sorted(manifests) for part in yaml.safe_load_all(manifests[name]) if part is not None
    ]
    for part in parts:
        for release in (OLDEST, NEWEST):
            kubernetes_validate.validate(part, release, strict=True)
    return yaml.safe_dump_all(parts, sort_keys=True, width=110)


def main() -> None:
    """Write what is kept; with --check, exit status 1 where it would be another."""
    text = f"# {digest()}\n{rendered(VALUES)}"
    rendered(PLAIN)
    if "--check" not in sys.argv[1:]:
        KEPT.write_text(text)
    elif KEPT.read_text() != text:
        raise SystemExit(f"{KEPT} is not what the chart renders: make chart")


if __name__ == "__main__":
    main()
