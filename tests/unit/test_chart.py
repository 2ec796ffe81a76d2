"""The Helm chart, by what it renders (tests/data/chart.yaml, written by `make chart`)."""

import json
import re
import subprocess

import jsonschema
import pytest
import yaml

from tests import chart

HINT = "the chart has changed since it was rendered: make chart"
COMPONENTS = ("web", "workers", "carriers")


@pytest.fixture(scope="module")
def parts():
    found = list(yaml.safe_load_all(chart.KEPT.read_text()))
    return {(part["kind"], part["metadata"]["name"]): part for part in found}


@pytest.fixture(scope="module")
def pods(parts):
    """The specification of the pods, by component."""
    return {
        part["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]: part["spec"][
            "template"
        ]["spec"]
        for (kind, _), part in parts.items()
        if kind in ("Deployment", "Job")
    }


def test_what_is_kept_is_of_the_chart_as_it_stands():
    assert chart.KEPT.read_text().splitlines()[0] == f"# {chart.digest()}", HINT


def test_nothing_runs_as_root_or_writes_to_its_image(pods):
    assert set(pods) == {*COMPONENTS, "migrate"}
    for pod in pods.values():
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["image"].endswith("@sha256:" + "0" * 64)


def test_workers_and_carriers_grow_with_what_waits(parts):
    for component, metric in (
        ("workers", "deputy_queue_messages"),
        ("carriers", "deputy_outbound_calls_and_waiting"),
    ):
        scaler = parts["HorizontalPodAutoscaler", f"deputy-{component}"]["spec"]
        assert scaler["scaleTargetRef"]["name"] == f"deputy-{component}"
        assert [one["external"]["metric"]["name"] for one in scaler["metrics"]] == [metric]
        assert (
            "replicas" not in parts["Deployment", f"deputy-{component}"]["spec"]
        )  # an upgrade would reset it


def test_every_part_keeps_running_while_a_machine_is_emptied(parts):
    for component in COMPONENTS:
        budget = parts["PodDisruptionBudget", f"deputy-{component}"]["spec"]
        assert budget["maxUnavailable"] == 1
        assert budget["selector"] == parts["Deployment", f"deputy-{component}"]["spec"]["selector"]


def test_only_web_takes_connections(parts):
    taking = {
        name: part["spec"].get("ingress") for (kind, name), part in parts.items() if kind == "NetworkPolicy"
    }
    assert set(taking) == {f"deputy-{component}" for component in (*COMPONENTS, "migrate")}
    assert [name for name, rules in taking.items() if rules] == ["deputy-web"]


def test_migrations_come_before_everything_of_the_release(parts, pods):
    hooks = {key: part["metadata"].get("annotations", {}) for key, part in parts.items()}
    weights = {
        key: int(found["helm.sh/hook-weight"]) for key, found in hooks.items() if "helm.sh/hook" in found
    }
    assert max(weights, key=weights.get) == ("Job", "deputy-migrate")
    assert {hooks[key]["helm.sh/hook"] for key in weights} == {"pre-install,pre-upgrade"}
    assert needed(pods["migrate"]) == weights.keys() - {("Job", "deputy-migrate")}


def test_what_pods_need_belongs_to_the_release_and_goes_back_with_it(parts, pods):
    """A hook is nobody's: Helm would replace it before the migration, and leave it so when it rolls back."""
    for component in COMPONENTS:
        assert needed(pods[component]) == {("ConfigMap", "deputy"), ("ServiceAccount", "deputy")}
        for key in needed(pods[component]):
            assert "helm.sh/hook" not in parts[key]["metadata"].get("annotations", {})
    assert parts["ConfigMap", "deputy"]["data"] == parts["ConfigMap", "deputy-migrate"]["data"]


def test_a_pod_of_the_new_release_is_there_before_one_of_the_old_goes(parts):
    for component in COMPONENTS:
        rolling = parts["Deployment", f"deputy-{component}"]["spec"]["strategy"]["rollingUpdate"]
        assert rolling == {"maxUnavailable": 0, "maxSurge": 1}


def needed(pod):
    """The parts of the chart without which the pod does not start."""
    (container,) = pod["containers"]
    settings = [each["configMapRef"]["name"] for each in container["envFrom"] if "configMapRef" in each]
    return {("ConfigMap", *settings), ("ServiceAccount", pod["serviceAccountName"])}


def test_the_probes_ask_for_a_host_that_is_allowed(parts, pods):
    allowed = parts["ConfigMap", "deputy"]["data"]["ALLOWED_HOSTS"].split(",")
    (web,) = pods["web"]["containers"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        headers = {header["name"]: header["value"] for header in web[probe]["httpGet"]["httpHeaders"]}
        assert headers["Host"] in allowed and headers["X-Forwarded-Proto"] == "https"


def test_a_secret_is_refused_among_the_settings():
    schema = json.loads((chart.CHART / "values.schema.json").read_text())
    values = yaml.safe_load((chart.CHART / "values.yaml").read_text()) | {"existingSecret": "deputy"}
    jsonschema.validate(values, schema)
    for name in ("DATABASE_URL", "SECRET_KEY", "METRICS_TOKEN"):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(values | {"settings": {name: "x"}}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(values | {"existingSecret": ""}, schema)


def test_every_setting_of_the_chart_is_explained(parts):
    explained = set(re.findall(r"`([A-Z_]+)`", (chart.ROOT / "docs" / "operating.md").read_text()))
    assert set(parts["ConfigMap", "deputy"]["data"]) <= explained


@pytest.mark.slow
def test_the_chart_renders_what_is_kept_and_fits_the_schemas():
    python = chart.ROOT / ".chart" / "bin" / "python"
    if not python.exists():
        pytest.skip("make chart has not been called here")
    done = subprocess.run(
        [python, "-m", "tests.chart", "--check"], cwd=chart.ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
