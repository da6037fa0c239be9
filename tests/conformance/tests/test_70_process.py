"""Command line, component configuration, probes, metrics, logs, TLS, leader election, shutdown. Spec 70."""
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import time
from pathlib import Path

import httpx
import pytest
import yaml
from cryptography import x509

from harness import Grm, config_map, deploy, eventually, is_condition, merge

API = {"apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1", "kind": "ResourceManagerConfiguration"}


def run(tmp_path: Path, *args: str, config=None, env=None, timeout=20) -> subprocess.CompletedProcess:
    """Runs the program until it ends by itself; `config` (dict or text) is written to a file and passed by --config."""
    if config is not None:
        file = tmp_path / "config.yaml"
        file.write_text(config if isinstance(config, str) else yaml.safe_dump(config))
        args = ("--config", str(file), *args)
    binary = tmp_path / "gardener-resource-manager"
    if not binary.exists():
        binary.symlink_to(Path(os.environ["GRM_BIN"]).resolve())
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("KUBE", "TARGET_KUBE"))}
    return subprocess.run([str(binary), *args], capture_output=True, text=True, env={**clean, **(env or {})}, timeout=timeout)


def valid(**over):
    """A configuration without findings, up to the connection: it fails later because there is no cluster."""
    return merge({**API, "leaderElection": {"leaderElect": False}, "server": {"webhooks": {"tls": {"serverCertDir": "/nowhere"}}},
                  "sourceClientConnection": {"kubeconfig": "/nowhere/kubeconfig"}, "controllers": {}, "webhooks": {}}, over)


# --- command line ------------------------------------------------------------------------------------------------------
def test_without_any_flag_the_missing_configuration_file_is_named(tmp_path):
    """spec 70 scenario 1: on stderr with usage, once more on stdout, exit code 1."""
    r = run(tmp_path)
    assert r.returncode == 1
    assert "Error: missing config file" in r.stderr
    assert "missing config file" in r.stdout


def test_the_version_is_one_line(tmp_path):
    """spec 70 §1."""
    r = run(tmp_path, "--version")
    assert r.returncode == 0
    assert len(r.stdout.strip().splitlines()) == 1 and re.search(r"v?\d+\.\d+", r.stdout)


def test_help_is_printed(tmp_path):
    """spec 70 §1."""
    r = run(tmp_path, "--help")
    assert r.returncode == 0 and "--config" in r.stdout


def test_positional_arguments_are_refused(tmp_path):
    """spec 70 §1."""
    r = run(tmp_path, "surprise")
    assert r.returncode == 1 and 'unknown command "surprise"' in r.stderr


def test_a_configuration_file_that_is_not_there_is_named(tmp_path):
    """spec 70 §1.1."""
    r = run(tmp_path, "--config", str(tmp_path / "absent.yaml"))
    assert r.returncode == 1 and "error reading config file:" in r.stderr and "absent.yaml" in r.stderr


# --- decoding ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("text", [
    "kind: Foo\napiVersion: resourcemanager.config.gardener.cloud/v1alpha1\n",
    "kind: ResourceManagerConfiguration\napiVersion: resourcemanager.config.gardener.cloud/v9\n",
    "controllers: [1, 2]\n",
    "controllers: {health: {syncPeriod: 15}}\n",
    "controllers: {health: {syncPeriod: soon}}\n",
    "a: b: c\n",
])
def test_what_does_not_decode_ends_the_program(tmp_path, text):
    """spec 70 §2, scenario 2."""
    r = run(tmp_path, config=text)
    assert r.returncode == 1 and "error decoding config:" in r.stderr


@pytest.mark.parametrize("drop", ["apiVersion", "kind", "both"])
def test_apiversion_and_kind_may_be_missing(tmp_path, drop):
    """spec 70 scenario 3: accepted, so that the program gets as far as the clusters."""
    c = valid()
    for key in ("apiVersion", "kind"):
        if drop in (key, "both"):
            del c[key]
    r = run(tmp_path, config=c)
    assert r.returncode == 1 and "error decoding" not in r.stderr + r.stdout and "/nowhere/kubeconfig" in r.stdout


# --- validation --------------------------------------------------------------------------------------------------------
FINDINGS = [
    ({"sourceClientConnection": {"cacheResyncPeriod": "9s"}}, "sourceClientConnection.cacheResyncPeriod: Invalid value: 9000000000: must be at least 10s"),
    ({"leaderElection": {"leaderElect": True}}, "leaderElection.resourceNamespace: Required value"),
    ({"leaderElection": {"leaderElect": True, "resourceNamespace": "x", "leaseDuration": "5s"}}, 'leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`'),
    ({"controllers": {"health": {"syncPeriod": "10s"}}}, 'controllers.health.syncPeriod: Invalid value: "10s": must be at least 15s'),
    ({"controllers": {"managedResource": {"concurrentSyncs": -1}}}, "controllers.managedResources.concurrentSyncs: Invalid value: -1: must be at least 1"),
    ({"controllers": {"garbageCollector": {"enabled": True, "syncPeriod": "14s"}}}, 'controllers.garbageCollector.syncPeriod: Invalid value: "14s": must be at least 15s'),
    ({"webhooks": {"projectedTokenMount": {"enabled": True, "expirationSeconds": 599}}}, "webhooks.projectedTokenMount.expirationSeconds: Invalid value: 599: must be at least 600"),
    ({"webhooks": {"systemComponentsConfig": {"podTolerations": [{"effect": "NoSchedule"}]}}}, "webhooks.systemComponentsConfig.podTolerations[0].operator: Invalid value"),
]


@pytest.mark.parametrize("over, finding", FINDINGS, ids=[f.split(":")[0] for _, f in FINDINGS])
def test_invalid_values_are_named_with_their_path(tmp_path, over, finding):
    """spec 70 §4."""
    r = run(tmp_path, config=valid(**over))
    assert r.returncode == 1 and finding in r.stderr, r.stderr[:400]


def test_all_findings_are_listed_in_order(tmp_path):
    """spec 70 scenario 8."""
    r = run(tmp_path, config=valid(logLevel="trace", logFormat="xml"))
    first, second = 'logLevel: Unsupported value: "trace": supported values: "debug", "info", "error"', 'logFormat: Unsupported value: "xml": supported values: "json", "text"'
    assert r.returncode == 1 and 0 <= r.stderr.find(first) < r.stderr.find(second)
    assert f"[{first}, {second}]" in r.stderr


def test_a_kubeconfig_with_an_exec_section_is_refused(tmp_path, source):
    """spec 70 scenario 19: although the user is not used."""
    kubeconfig = yaml.safe_load(source.grm_kubeconfig.read_text())
    kubeconfig["users"].append({"name": "other", "user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/true", "interactiveMode": "Never"}}})
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(kubeconfig))
    r = run(tmp_path, config=valid(sourceClientConnection={"kubeconfig": str(file)}))
    assert r.returncode == 1 and 'exec configurations are not supported (user "other")' in r.stdout


def test_without_a_serving_certificate_the_program_ends(tmp_path, source):
    """spec 70 scenario 26: even when no webhook is enabled."""
    k = {"kubeconfig": str(source.grm_kubeconfig)}
    r = run(tmp_path, config=valid(sourceClientConnection=k, targetClientConnection=k,
                                   server={"webhooks": {"port": 0}, "healthProbes": {"port": 0}, "metrics": {"port": 0}}), timeout=60)
    assert r.returncode == 1


# --- a running program -------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def grm(start, source):
    return start(source, config={"logFormat": "json", "webhooks": {"kubernetesServiceHost": {"enabled": True, "host": "h"}}, "debugging": {"enableProfiling": False}})


def test_probes_answer_ok(grm):
    """spec 70 §6."""
    for path in ("healthz", "readyz", "healthz/ping", "healthz/apiserver-healthz", "healthz/source-informer-sync", "readyz/target-informer-sync", "readyz/webhook-server"):
        r = httpx.get(f"http://127.0.0.1:{grm.health_port}/{path}")
        assert (r.status_code, r.text) == (200, "ok"), path
    assert grm.healthz("healthz/unknown") == 404


def test_verbose_probes_list_their_checks(grm):
    """spec 70 §6."""
    r = httpx.get(f"http://127.0.0.1:{grm.health_port}/readyz?verbose")
    assert [line for line in r.text.splitlines() if line.startswith("[")] == [
        "[+]source-informer-sync ok", "[+]target-informer-sync ok", "[+]webhook-server ok"]


@pytest.mark.parametrize("controller", ["managedresource", "health", "health-progressing"])
def test_series_of_a_controller_exist_from_the_start(grm, controller):
    """spec 70 §9.2, scenario 32."""
    eventually(lambda: f'controller_runtime_max_concurrent_reconciles{{controller="{controller}"}}' in grm.metrics())
    text = grm.metrics()
    for result in ("success", "error", "requeue", "requeue_after"):
        assert f'controller_runtime_reconcile_total{{controller="{controller}",result="{result}"}}' in text


@pytest.mark.parametrize("name", ["workqueue_depth", "workqueue_adds_total", "workqueue_queue_duration_seconds_bucket", "rest_client_requests_total", "controller_runtime_webhook_requests_total",
                                  "controller_runtime_webhook_latency_seconds_bucket", "process_resident_memory_bytes", "process_cpu_seconds_total", "certwatcher_read_certificate_total"])
def test_metrics_that_dashboards_query_exist(grm, k, ns, name):
    """spec 70 §9.2."""
    deploy(k, ns, "one", config_map(ns, "a"))
    eventually(lambda: is_condition(k.get("ManagedResource", ns, "one"), "ResourcesApplied", "True"))
    grm.post("/webhooks/kubernetes-service-host", {})
    assert re.search(rf"^{name}[{{ ]", grm.metrics(), re.M), name


def test_every_log_record_is_json_with_the_agreed_keys(grm):
    """spec 70 §10, scenario 33."""
    records = [json.loads(line) for line in grm.log().splitlines() if line.startswith("{")]
    assert len(records) > 5
    for record in records:
        assert {"level", "ts", "msg"} <= record.keys()
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record["ts"]), record["ts"]


def test_profiling_is_off_by_default(grm):
    """spec 70 scenario 31."""
    assert httpx.get(f"http://127.0.0.1:{grm.metrics_port}/debug/pprof/").status_code == 404


def test_writes_carry_the_known_field_manager(grm, k, ns):
    """spec 70 scenario 35."""
    deploy(k, ns, "one", config_map(ns, "a"))
    o = eventually(lambda: k.find("ConfigMap", ns, "a"))
    assert [f["manager"] for f in o["metadata"]["managedFields"]] == ["gardener-resource-manager"]


def served_serial(g: Grm) -> int:
    with socket.create_connection(("127.0.0.1", g.webhook_port), timeout=5) as raw:
        with ssl.create_default_context(cafile=str(g.dir / "webhook-ca.crt")).wrap_socket(raw, server_hostname="localhost") as tls:
            return x509.load_der_x509_certificate(tls.getpeercert(binary_form=True)).serial_number


def test_a_new_serving_certificate_is_used_without_restart(grm):
    """spec 70 scenario 25; fault 25."""
    before = served_serial(grm)
    grm.write_serving_certificate()
    eventually(lambda: served_serial(grm) != before, timeout=30, every=0.5)


def test_a_lease_is_held_and_released(start, source, k, ns):
    """spec 70 §12, scenario 27."""
    g = start(source, config={"leaderElection": {"leaderElect": True, "resourceNamespace": ns, "resourceName": "grm"}})
    holder = eventually(lambda: k.get("Lease", ns, "grm")["spec"].get("holderIdentity"))
    assert holder
    assert g.stop() == 0
    assert not k.get("Lease", ns, "grm")["spec"].get("holderIdentity")


def test_only_the_leader_works_and_a_standby_takes_over(start, source, k, ns):
    """spec 70 scenario 24."""
    config = {"leaderElection": {"leaderElect": True, "resourceNamespace": ns, "resourceName": "grm", "leaseDuration": "4s", "renewDeadline": "3s", "retryPeriod": "1s"},
              "controllers": {"resourceClass": ns}, "webhooks": {"kubernetesServiceHost": {"enabled": True, "host": "h"}}}
    first = start(source, config=config)
    eventually(lambda: k.get("Lease", ns, "grm")["spec"].get("holderIdentity"))
    second = start(source, config=config)
    assert second.healthz("readyz") == 200
    assert second.post("/webhooks/kubernetes-service-host", {}).status_code < 500

    first.proc.send_signal(signal.SIGKILL)
    deploy(k, ns, "one", config_map(ns, "a"), cls=ns)

    eventually(lambda: k.find("ConfigMap", ns, "a"), timeout=30)
    assert second.proc.poll() is None


def test_sigterm_ends_the_program_cleanly(start, source):
    """spec 70 §13."""
    g = start(source)
    t = time.monotonic()
    assert g.stop() == 0
    assert time.monotonic() - t < 6


def test_only_configured_namespaces_are_watched(start, source, k, ns):
    """spec 70 §8.4."""
    start(source, config={"sourceClientConnection": {"namespaces": [ns]}, "controllers": {"resourceClass": "only-" + ns}})
    k.ensure({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns + "-x"}})
    deploy(k, ns + "-x", "one", config_map(ns, "from-outside"), cls="only-" + ns)
    deploy(k, ns, "one", config_map(ns, "from-inside"), cls="only-" + ns)
    eventually(lambda: k.find("ConfigMap", ns, "from-inside"))
    assert k.find("ConfigMap", ns, "from-outside") is None and not k.get("ManagedResource", ns + "-x", "one").get("status")
