"""The charts in a real API server with RBAC: strict validation, helm's own install, upgrade, test and uninstall, and the programs
with the rights that the charts grant. No kubelet runs Pods here, so the test runs their commands."""
from __future__ import annotations

import base64
import os
import subprocess
import threading
from pathlib import Path

import pytest
import yaml

from chart import CHARTS, GCM, GRM, ROOT, case, cases, configuration, delivered, helm, only
from definitions import RESOURCES as FOREIGN, definitions

from harness.certs import Authority
from harness.client import RESOURCES, ApiError, Client, eventually
from harness.controlplane import ADMIN_TOKEN, ControlPlane, free_port
from harness.gcm import Garden
from harness.objects import namespace
from harness.program import Program

RESOURCES.update(FOREIGN)
RESOURCES["ControllerRevision"] = ("apps/v1", "controllerrevisions", True)


@pytest.fixture(scope="module")
def cluster():
    garden = Garden(objects=False, name="charts")
    for definition in [yaml.safe_load((ROOT / "deploy/crd-managedresources.yaml").read_text()), *definitions()]:
        garden.k.create(definition)
    for kind in ("ManagedResource", *FOREIGN):
        eventually(lambda: garden.k.list(kind) is not None, f"{kind} is served", timeout=60)
    for name in sorted({at.namespace for at in cases()} | {"a", "b", "garden"} - {"kube-system"}):
        garden.k.ensure(namespace(name))
    yield garden
    garden.stop()


@pytest.fixture
def releases(cluster):
    """Namespaces whose release is removed after the case, whatever becomes of it: releases share objects of the cluster."""
    used: list[str] = []
    yield used
    for ns in used:
        helm("uninstall", "release", f"--namespace={ns}", "--ignore-not-found", kubeconfig=cluster.kubeconfig)


@pytest.mark.parametrize("at", cases(), ids=str)
def chart_passes_the_strict_validation_of_an_api_server(at, cluster):
    objects = at.objects()
    for o in objects + [o for o in delivered(objects) if o not in objects]:
        cluster.k.request("PATCH", cluster.k.path(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]), o, "application/apply-patch+yaml",
                          dryRun="All", force="true", fieldManager="test", fieldValidation="Strict")


class Installed(Program):
    """A program with the configuration and the ServiceAccount of an installed chart, beside the API server instead of in a Pod."""

    def __init__(self, cluster: Garden, objects: list[dict], kubeconfig: Path):
        chart = self.name
        self._folder("chart")
        config = configuration(objects)
        self.health_port, self.metrics_port = free_port(), free_port()
        config["server"]["healthProbes"] = {"bindAddress": "127.0.0.1", "port": self.health_port}
        config["server"]["metrics"] = {"bindAddress": "127.0.0.1", "port": self.metrics_port}
        if chart == GRM:
            tls = self.dir / "tls"
            tls.mkdir()
            for key, text in cluster.k.get("Secret", objects[0]["metadata"]["namespace"], f"{GRM}-tls")["data"].items():
                (tls / key).write_bytes(base64.b64decode(text))
            config["server"]["webhooks"] = {"bindAddress": "127.0.0.1", "port": free_port(), "tls": {"serverCertDir": str(tls)}}
            config.setdefault("targetClientConnection", {})["kubeconfig"] = str(kubeconfig)
            config["sourceClientConnection"]["kubeconfig"] = str(kubeconfig)
        else:
            config["gardenClientConnection"]["kubeconfig"] = str(kubeconfig)
        self._start(config, None)


class InstalledGrm(Installed):
    name, variable = GRM, "GRM_BIN"


class InstalledGcm(Installed):
    name, variable = GCM, "GCM_BIN"


def account_of(cluster: Garden, objects: list[dict]) -> tuple[str, Path]:
    """The user name of the ServiceAccount of a release, and a kubeconfig of it."""
    spec = only(objects, "Deployment")
    ns, name = spec["metadata"]["namespace"], spec["spec"]["template"]["spec"]["serviceAccountName"]
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": ["kubernetes"], "expirationSeconds": 3600}}
    token = cluster.k.request("POST", cluster.k.path("ServiceAccount", ns, name, "token"), request)["status"]["token"]
    return f"system:serviceaccount:{ns}:{name}", cluster.write_kubeconfig(f"{ns}-{name}", token)


def refusals(cluster: Garden, user: str, mark: int) -> list[str]:
    return sorted({f"{e['verb']} {e['requestURI'].split('?')[0]}" for e in cluster.audit(user, mark) if e.get("responseStatus", {}).get("code") == 403})


def install(cluster: Garden, chart: str, ns: str, *arguments: str, verb: str = "install") -> list[dict]:
    helm(verb, "release", str(CHARTS / chart), f"--namespace={ns}", *(["--create-namespace"] if verb == "install" else []), *arguments, kubeconfig=cluster.kubeconfig)
    return manifest(cluster, ns)


def manifest(cluster: Garden, ns: str) -> list[dict]:
    return [o for o in yaml.safe_load_all(helm("get", "manifest", "release", f"--namespace={ns}", kubeconfig=cluster.kubeconfig)) if o]


def uninstall(cluster: Garden, ns: str) -> None:
    helm("uninstall", "release", f"--namespace={ns}", kubeconfig=cluster.kubeconfig)


def exists(cluster: Garden, o: dict) -> bool:
    return cluster.k.find(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) is not None


def run_test_pod(cluster: Garden, ns: str, name: str, program: str, kubeconfig: Path | None, folder: Path) -> subprocess.CompletedProcess:
    """Does what a kubelet would with the Pod of `helm test`, while helm waits for it."""
    ran = []

    def kubelet():
        pod = eventually(lambda: cluster.k.find("Pod", ns, name), "the Pod of the test exists", timeout=60)
        container, = pod["spec"]["containers"]
        arguments = [argument for argument in container["args"]]
        for volume in pod["spec"]["volumes"]:
            if "configMap" in volume:
                mount = next(m["mountPath"] for m in container["volumeMounts"] if m["name"] == volume["name"])
                for key, text in cluster.k.get("ConfigMap", ns, volume["configMap"]["name"])["data"].items():
                    (folder / key).write_text(text)
                arguments = [argument.replace(mount, str(folder)) for argument in arguments]
        done = subprocess.run([os.environ[program], *arguments, *([f"--kubeconfig={kubeconfig}"] if kubeconfig else [])], capture_output=True, text=True, timeout=60)
        ran.append(done)
        phase = "Succeeded" if done.returncode == 0 else "Failed"
        cluster.k.patch("Pod", ns, name, {"status": {"phase": phase}}, "status")

    thread = threading.Thread(target=kubelet)
    thread.start()
    helm("test", "release", f"--namespace={ns}", "--timeout=60s", kubeconfig=cluster.kubeconfig)
    thread.join()
    return ran[0]


def chart_installs_upgrades_tests_and_uninstalls(cluster, releases, tmp_path):
    """The definition of ManagedResources, the Lease and the namespace stay; docs/install.md says so."""
    ns = "grm-life"
    releases.append(ns)
    webhooks = "--set-json=global.config.webhooks={\"seccompProfile\": {\"enabled\": true}, \"projectedTokenMount\": {\"enabled\": true}}"
    first = install(cluster, GRM, ns, webhooks)
    user, kubeconfig = account_of(cluster, first)
    certificate = cluster.k.get("Secret", ns, f"{GRM}-tls")["data"]
    # Its webhooks answer nobody yet, and fail closed: they must not keep the program from starting (spec 71 scenario 13).
    template = only(first, "Deployment")["spec"]["template"]
    cluster.k.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "own", "namespace": ns, "labels": template["metadata"]["labels"]}, "spec": template["spec"]})
    other = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other", "namespace": ns}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    with pytest.raises(ApiError, match="failed calling webhook"):
        cluster.k.create(other)
    cluster.k.create(other | {"metadata": {"name": "other", "namespace": "kube-system"}})

    tested = run_test_pod(cluster, ns, f"{GRM}-test", "GRM_BIN", kubeconfig, tmp_path)
    assert tested.returncode == 0, tested.stderr

    second = install(cluster, GRM, ns, webhooks, "--set=global.replicaCount=2", verb="upgrade")
    assert cluster.k.get("Deployment", ns, GRM)["spec"]["replicas"] == 2
    assert cluster.k.get("Secret", ns, f"{GRM}-tls")["data"] == certificate, "an upgrade keeps the certificate"
    bundles = {w["clientConfig"]["caBundle"] for w in cluster.k.get("MutatingWebhookConfiguration", None, GRM)["webhooks"]}
    assert bundles == {certificate["ca.crt"]}

    program = InstalledGrm(cluster, second, kubeconfig)
    try:
        program.wait_ready(120)
        eventually(lambda: cluster.k.get("Lease", ns, GRM)["spec"]["holderIdentity"], "it leads")
    finally:
        assert program.stop() == 0

    elsewhere = "--set=global.webhookAddress=https://grm.example.org"
    install(cluster, GRM, ns, webhooks, elsewhere, verb="upgrade")
    moved = cluster.k.get("Secret", ns, f"{GRM}-tls")["data"]
    assert moved["tls.crt"] != certificate["tls.crt"], "the old certificate is for other hosts"
    install(cluster, GRM, ns, webhooks, elsewhere, verb="upgrade")
    assert cluster.k.get("Secret", ns, f"{GRM}-tls")["data"] == moved

    uninstall(cluster, ns)
    assert [o["metadata"]["name"] for o in second if exists(cluster, o)] == []
    assert cluster.k.find("CustomResourceDefinition", None, "managedresources.resources.gardener.cloud")
    assert cluster.k.find("Lease", ns, GRM)


def chart_grants_what_the_program_needs_with_all_of_its_parts(cluster, releases):
    """spec 71 §5.2: all controllers and webhooks are on, and the API server refuses nothing."""
    ns = "grm-rights"
    releases.append(ns)
    values = [f"--values={file}" for file in case(GRM, "everything").files]
    values += ["--set=global.tls.existingSecret=", "--set=global.serviceAccount.name=", "--set-json=global.imagePullSecrets=[]",
               "--set=global.config.logFormat=json", "--set=global.config.leaderElection.retryPeriod=1s",
               '--set-json=global.rbac.target.rules=[{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"]}]']
    objects = install(cluster, GRM, ns, *values)
    # The program does not listen at the address of its Service here.
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        cluster.k.delete(kind, None, GRM)
    user, kubeconfig = account_of(cluster, objects)
    mark = cluster.audit_mark()
    program = InstalledGrm(cluster, objects, kubeconfig)
    try:
        program.wait_ready(120)
        bundle = yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "managed", "namespace": ns}, "data": {"a": "b"}})
        cluster.k.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bundle", "namespace": ns}, "stringData": {"a.yaml": bundle}})
        mr = {"apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource", "metadata": {"name": "web", "namespace": ns},
              "spec": {"secretRefs": [{"name": "bundle"}]}}
        cluster.k.create(mr)
        token = {"serviceaccount.resources.gardener.cloud/name": "agent", "serviceaccount.resources.gardener.cloud/namespace": ns}
        cluster.k.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": ns, "annotations": token, "labels": {
            "resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"}}})
        eventually(lambda: {c["type"]: c["status"] for c in cluster.k.get("ManagedResource", ns, "web")["status"]["conditions"]} ==
                   {"ResourcesApplied": "True", "ResourcesHealthy": "True", "ResourcesProgressing": "False"}, "the bundle is applied", timeout=60)
        eventually(lambda: "token" in cluster.k.get("Secret", ns, "token")["data"], "the token is requested", timeout=60)
        assert cluster.k.get("ConfigMap", ns, "managed")["data"] == {"a": "b"}
        cluster.k.delete("Secret", ns, "token")
        cluster.k.delete("ManagedResource", ns, "web")
        eventually(lambda: not cluster.k.find("ManagedResource", ns, "web"), "the bundle is gone", timeout=60)
    finally:
        program.stop()

    assert refusals(cluster, user, mark) == []


def chart_with_the_rights_of_no_part_shows_what_is_missing(cluster, releases):
    """The counterpart of the case above: refused requests are found."""
    ns = "grm-none"
    releases.append(ns)
    objects = install(cluster, GRM, ns, "--set=global.rbac.create=false", "--set=global.config.leaderElection.leaderElect=false")
    user, kubeconfig = account_of(cluster, objects)
    mark = cluster.audit_mark()
    program = InstalledGrm(cluster, objects, kubeconfig)
    try:
        eventually(lambda: refusals(cluster, user, mark), "a request is refused", timeout=60)
    finally:
        program.stop()


def chart_of_gardener_controller_manager_lives_in_a_garden_cluster(cluster, releases, tmp_path):
    """spec 80 §18, scenario 35: with the rights of the table nothing is refused. The topics 81 to 86 of tests/conformance have them, too."""
    ns = "garden"
    releases.append(ns)
    objects = install(cluster, GCM, ns, "--set-json=global.controller.config.controllers.event={}")
    user, kubeconfig = account_of(cluster, objects)
    tested = run_test_pod(cluster, ns, f"{GCM}-test", "GCM_BIN", None, tmp_path)
    assert tested.returncode == 0, tested.stderr
    mark = cluster.audit_mark()
    program = InstalledGcm(cluster, objects, kubeconfig)
    try:
        program.wait_ready(120)
        eventually(lambda: cluster.k.get("Lease", ns, "gardener-controller-manager-leader-election")["spec"]["holderIdentity"], "it leads", timeout=60)
        cluster.k.create({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "ExposureClass", "metadata": {"name": "internet"}, "handler": "h"})
        eventually(lambda: cluster.k.get("ExposureClass", None, "internet")["metadata"].get("finalizers") is None, "the class is seen", timeout=90)  # its kind may be found a minute late
    finally:
        program.stop()
    assert refusals(cluster, user, mark) == []

    upgraded = install(cluster, GCM, ns, "--set=global.controller.replicaCount=2", verb="upgrade")
    assert cluster.k.get("Deployment", ns, GCM)["spec"]["replicas"] == 2
    uninstall(cluster, ns)
    assert [o["metadata"]["name"] for o in upgraded if exists(cluster, o)] == []


def chart_takes_over_a_release_of_gardeners_chart(cluster, releases, tmp_path):
    """The labels and selectors of its Deployment and Service are the same, which cannot be changed. Its Service stays headless until it
    is deleted; docs/upgrade.md says so."""
    ns = "grm-take-over"
    releases.append(ns)
    labels = {"app": "gardener", "role": "resource-manager"}
    meta = {"name": GRM, "labels": labels}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": GRM, "image": "old"}]}}
    old = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {"selector": {"matchLabels": labels}, "template": pod}},
        {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"clusterIP": "None", "selector": labels, "ports": [
            {"name": "metrics", "port": 8080, "targetPort": 8080}, {"name": "health", "port": 8081, "targetPort": 8081},
            {"name": "server", "port": 443, "targetPort": 10250}]}},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": meta | {"name": f"{GRM}-source"},
         "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta | {"name": f"{GRM}-config"}, "data": {"config.yaml": "{}"}},
    ]
    chart = tmp_path / GRM
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text(f"apiVersion: v2\nname: {GRM}\nversion: 0.1.0\n")
    (chart / "templates" / "all.yaml").write_text(yaml.safe_dump_all(old))
    # As Helm 3 does.
    helm("install", "release", str(chart), f"--namespace={ns}", "--create-namespace", "--server-side=false", kubeconfig=cluster.kubeconfig)

    objects = install(cluster, GRM, ns, *(f"--values={file}" for file in case(GRM, "upstream").files), verb="upgrade")

    assert cluster.k.get("Deployment", ns, GRM)["spec"]["template"]["spec"]["containers"][0]["image"] != "old"
    assert cluster.k.get("Service", ns, GRM)["spec"]["clusterIP"] == "None"
    assert not cluster.k.find("ClusterRole", None, f"{GRM}-source"), "the values name a namespace, so there is a Role instead"
    uninstall(cluster, ns)
    assert [o["metadata"]["name"] for o in objects if exists(cluster, o)] == []


def webhook_authorizer_files_are_those_that_a_kube_apiserver_reads(tmp_path):
    """spec 71 §9: while the authorizer answers nobody, node agents are denied, and nobody else notices."""
    authority = Authority("authorizer")
    (tmp_path / "ca.crt").write_bytes(authority.cert_pem)
    printed = subprocess.run([os.environ["GRM_BIN"], "webhook", "registration", "--place=shoot", "--authorizer", f"--ca-file={tmp_path / 'ca.crt'}"],
                             capture_output=True, text=True, check=True).stdout
    configuration, kubeconfig = yaml.safe_load_all(printed)
    assert kubeconfig["clusters"][0]["cluster"]["server"] == "https://gardener-resource-manager/webhooks/auth/nodeagent"
    kubeconfig["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{free_port()}/webhooks/auth/nodeagent"
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    configuration["authorizers"][-1]["webhook"]["connectionInfo"]["kubeConfigFile"] = str(tmp_path / "kubeconfig")

    plane = ControlPlane(authorization_config=yaml.safe_dump(configuration), name="authorizer")
    try:
        admin = Client(plane.url, str(plane.dir / "ca.crt"), ADMIN_TOKEN)
        assert admin.list("Node") == []
        with pytest.raises(ApiError, match="/webhooks/auth/nodeagent.*connection refused"):
            admin.acting_as("gardener.cloud:node-agent:machine:a", "gardener.cloud:node-agents").list("Node")
        with pytest.raises(ApiError, match="forbidden"):
            admin.acting_as("alice").list("Node")
    finally:
        plane.stop()
