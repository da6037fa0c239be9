"""The charts as helm renders them: golden files, values, and the defects of Gardener's charts (spec 71 §12, spec 80 §19)."""
from __future__ import annotations

import base64
import json
import os
import re
import subprocess

import pytest
import yaml
from cryptography import x509

from chart import CHARTS, GCM, GRM, HERE, ROOT, RELEASE, case, cases, configuration, delivered, helm, of_kind, only, refused, registrations, render
from golden import text_of

ALL = pytest.mark.parametrize("at", cases(), ids=str)


def set_(**values) -> list[str]:
    return [f"--set-json=global.{key.replace('__', '.')}={json.dumps(value)}" for key, value in values.items()]


@ALL
def chart_renders_as_its_golden_file(at, renew):
    text = f"# {at}, rendered. Renew it with: .ci/charts --renew\n" + text_of(at.objects())
    file = HERE / "golden" / at.chart / f"{at.name}.yaml"
    if renew:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    assert file.exists() and file.read_text() == text, f"{file.relative_to(ROOT)} differs: .ci/charts --renew shows how, with git diff"


def chart_has_a_case_for_each_golden_file():
    golden = {f"{path.parent.name}/{path.stem}" for path in (HERE / "golden").glob("*/*.yaml")}
    assert golden == {str(at) for at in cases()}


@ALL
def chart_renders_a_configuration_that_the_program_takes_without_a_remark(at, tmp_path):
    objects = at.objects()
    if not of_kind(objects, "Deployment"):
        pytest.skip("installs no program")
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(configuration(objects)))
    program = {GRM: "GRM_BIN", GCM: "GCM_BIN"}[at.chart]

    done = subprocess.run([os.environ[program], f"--config={file}", "--print-config"], capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stderr) == (0, ""), done.stderr


@pytest.mark.parametrize("at", [at for at in cases(GRM) if at.name not in ("two-clusters",)], ids=str)
def webhook_registrations_of_the_chart_are_those_that_the_command_prints(at, tmp_path):
    objects = at.objects()
    config = tmp_path / "config.yaml"
    if of_kind(objects, "Deployment"):
        config.write_text(yaml.safe_dump(configuration(objects)))
    else:
        config.write_text(yaml.safe_dump({"leaderElection": {"leaderElect": False}, "webhooks": at.values["global"]["config"]["webhooks"]}))
    prefix = at.values.get("global", {}).get("namePrefix", "")
    ca = tmp_path / "ca.crt"
    bundles = {w["clientConfig"].get("caBundle") for o in registrations(objects) for w in o["webhooks"]} - {None}
    assert len(bundles) <= 1
    ca.write_bytes(base64.b64decode(bundles.pop()) if bundles else b"-----BEGIN CERTIFICATE-----\n")

    printed = subprocess.run([os.environ["GRM_BIN"], "webhook", "registration", f"--place={at.place}", f"--config={config}",
                              f"--ca-file={ca}", f"--namespace={at.namespace}", f"--prefix={prefix}"], capture_output=True, text=True, check=True)
    expected = list(yaml.safe_load_all(printed.stdout))

    actual = registrations(objects)
    for o in actual if at.place == "cluster" else []:
        # The labels are those of all objects of the chart (spec 71 §12.2).
        assert o["metadata"].pop("labels") == {"app": "gardener", "role": "resource-manager"}
    for o in actual:
        if o["metadata"].pop("annotations", None):  # cert-manager writes the CA
            o["webhooks"] = [w | {"clientConfig": w["clientConfig"] | {"caBundle": base64.b64encode(ca.read_bytes()).decode()}} for w in o["webhooks"]]
        address = at.values.get("global", {}).get("webhookAddress")
        for w in o["webhooks"] if address else []:
            path = w["clientConfig"]["url"].removeprefix(address)
            w["clientConfig"] = {"service": {"name": GRM, "namespace": at.namespace, "path": path}, "caBundle": w["clientConfig"]["caBundle"]}
    for o in expected if at.place == "cluster" else []:
        o["metadata"].pop("labels")
    if at.chart == GRM and not of_kind(objects, "Deployment"):
        assert not of_kind(objects, "Service")
    assert actual == expected


# --- spec 71, scenarios and defects -----------------------------------------------------------------------------------------


def chart_with_vpa_in_place_updates_is_valid():
    """spec 71 scenario 22, §12.3 no. 5: a selector of that webhook is where it belongs."""
    objects = render(GRM, "garden", *set_(config__webhooks__vpaInPlaceUpdates={"enabled": True}))
    webhook, = only(objects, "MutatingWebhookConfiguration")["webhooks"]
    assert webhook["objectSelector"] == {"matchExpressions": [{"key": "vpa-in-place-updates.resources.gardener.cloud/skip", "operator": "DoesNotExist"}]}


def chart_with_two_namespaces_has_two_roles_and_no_cluster_role_for_the_source():
    """spec 71 scenario 23, §12.3 no. 2."""
    objects = case(GRM, "two-namespaces").objects()
    roles = [(o["metadata"]["namespace"], o["metadata"]["name"]) for o in of_kind(objects, "Role")]
    bindings = [(o["metadata"]["namespace"], o["roleRef"]["name"]) for o in of_kind(objects, "RoleBinding")]
    source = [("a", f"{GRM}-source"), ("b", f"{GRM}-source")]
    assert [role for role in roles if role[1].endswith("-source")] == source
    assert [binding for binding in bindings if binding[1].endswith("-source")] == source
    assert f"{GRM}-source" not in [o["metadata"]["name"] for o in of_kind(objects, "ClusterRole")]


def chart_takes_the_values_of_gardeners_chart():
    """spec 71 scenario 24, §12.3 no. 1."""
    objects = case(GRM, "upstream").objects()
    controllers = configuration(objects)["controllers"]
    assert controllers["managedResource"] == {"concurrentSyncs": 9, "syncPeriod": "3m", "alwaysUpdate": True, "managedByLabelValue": "me"}
    assert controllers["nodeCriticalComponents"] == {"enabled": True, "concurrentSyncs": 3, "backoff": "20s"}
    assert controllers["csrApprover"] == {"enabled": True, "concurrentSyncs": 2, "machineNamespace": "garden"}, "spec 70 §2.2"
    assert not controllers.keys() & {"managedResources", "node", "kubeletCSRApprover", "secret", "rootCAPublisher"}
    assert configuration(objects)["sourceClientConnection"]["namespaces"] == ["garden"]


def chart_gives_todays_spelling_of_a_key_the_last_word():
    values = set_(config__controllers={"managedResources": {"syncPeriod": "2m", "concurrentSyncs": 7}, "managedResource": {"syncPeriod": "3m"}})
    assert configuration(render(GRM, "a", *values))["controllers"]["managedResource"] == {"syncPeriod": "3m", "concurrentSyncs": 7}


def chart_registers_the_paths_that_the_program_serves():
    """spec 71 §12.3 no. 3, 4, 6, 10."""
    objects = case(GRM, "everything").objects()
    webhooks = [w for o in registrations(objects) for w in o["webhooks"]]
    paths = {w["clientConfig"]["service"]["path"] for w in webhooks}
    assert {"/validate-druid-gardener-cloud-v1alpha1-etcd", "/webhooks/kubernetes-service-host", "/webhooks/pod-kube-apiserver-load-balancing"} <= paths
    for w in only(objects, "ValidatingWebhookConfiguration")["webhooks"]:
        assert "reinvocationPolicy" not in w
    static = {"key": "static-pod", "operator": "NotIn", "values": ["true"]}
    for w in webhooks:
        if any("pods" in rule["resources"] for rule in w["rules"]):
            assert static in w["objectSelector"]["matchExpressions"], w["name"]


def chart_excludes_its_own_pods_from_its_webhooks_and_no_others():
    """spec 71 §12.3 no. 8, §14 no. 4: no selector names a label that other Pods of Gardener have."""
    for at in cases(GRM):
        objects = at.objects()
        for deployment in of_kind(objects, "Deployment"):
            pod = deployment["spec"]["template"]["metadata"]["labels"]
            for o in of_kind(objects, "MutatingWebhookConfiguration"):
                for w in o["webhooks"]:
                    expressions = w["objectSelector"].get("matchExpressions", [])
                    assert not [e for e in expressions if e["key"] == "role" or e.get("values") == ["gardener"]], w["name"]
                    if w["failurePolicy"] != "Fail" or w["name"].startswith("pod-kube-apiserver-load-balancing"):
                        continue  # it does not block, or selects namespaces of shoots only
                    own = {"pods": [pod], "deployments": [deployment["metadata"]["labels"]],
                           "verticalpodautoscalers": [v["metadata"]["labels"] for v in of_kind(objects, "VerticalPodAutoscaler")]}
                    for kind, labels in own.items():
                        if any(kind in rule["resources"] for rule in w["rules"]):
                            assert not any(_selects(w["objectSelector"], each) for each in labels), f"{at}: {w['name']} selects the program itself"


def _selects(selector: dict, labels: dict) -> bool:
    def matches(e):
        value = labels.get(e["key"])
        return {"In": value in e.get("values", []), "NotIn": value not in e.get("values", []), "Exists": value is not None,
                "DoesNotExist": value is None}[e["operator"]]
    return all(labels.get(k) == v for k, v in selector.get("matchLabels", {}).items()) and all(map(matches, selector.get("matchExpressions", [])))


def chart_takes_several_annotations_and_labels_of_pods():
    """spec 71 §12.3 no. 9."""
    metadata = only(case(GRM, "upstream").objects(), "Deployment")["spec"]["template"]["metadata"]
    assert metadata["annotations"].items() >= {"example.org/a": "1", "example.org/b": "2"}.items()
    assert metadata["labels"].items() >= {"example.org/c": "3", "example.org/d": "4"}.items()


def chart_makes_a_certificate_for_the_service_if_the_values_have_none():
    """spec 71 §12.3 no. 11."""
    objects = render(GRM, "ns", *set_(config__webhooks__seccompProfile={"enabled": True}))
    data = {key: base64.b64decode(text) for key, text in only(objects, "Secret", f"{GRM}-tls")["data"].items()}
    ca, certificate = (x509.load_pem_x509_certificate(data[key]) for key in ("ca.crt", "tls.crt"))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(x509.DNSName)

    certificate.verify_directly_issued_by(ca)
    assert names == [GRM, f"{GRM}.ns", f"{GRM}.ns.svc", f"{GRM}.ns.svc.cluster.local"]
    for w in only(objects, "MutatingWebhookConfiguration")["webhooks"]:
        assert base64.b64decode(w["clientConfig"]["caBundle"]) == data["ca.crt"]
    secret = next(v["secret"]["secretName"] for v in only(objects, "Deployment")["spec"]["template"]["spec"]["volumes"] if v["name"] == "tls")
    assert secret == f"{GRM}-tls"


@pytest.mark.parametrize(("address", "names", "addresses"), [
    ("https://grm.example.org:443", ["grm.example.org"], []),
    ("https://192.0.2.7", [], ["192.0.2.7"]),
    ("https://[2001:db8::7]:8443", [], ["2001:db8::7"]),
])
def chart_certificate_is_for_the_host_of_the_webhook_address(address, names, addresses):
    webhooks = {"webhookAddress": address, "config__webhooks__seccompProfile": {"enabled": True}}
    secret = only(render(GRM, "ns", *set_(**webhooks)), "Secret", f"{GRM}-tls")
    certificate = x509.load_pem_x509_certificate(base64.b64decode(secret["data"]["tls.crt"]))
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    requested = only(render(GRM, "ns", *set_(**webhooks, tls__certManager={"enabled": True, "issuerRef": {"name": "a"}})), "Certificate")["spec"]

    service = [GRM, f"{GRM}.ns", f"{GRM}.ns.svc", f"{GRM}.ns.svc.cluster.local"]
    assert found.get_values_for_type(x509.DNSName) == requested["dnsNames"] == [*service, *names]
    assert [str(ip) for ip in found.get_values_for_type(x509.IPAddress)] == requested.get("ipAddresses", []) == addresses


@pytest.mark.parametrize(("values", "text"), [
    ({"deploy__runtime": False}, "another release has the certificate"),
    ({"deploy__runtime": False, "tls__certManager": {"enabled": True, "issuerRef": {"name": "b"}}}, "another release has the certificate"),
    ({"tls__existingSecret": "mine"}, "no key ca.crt in Secret default/mine"),
    ({"config__server__webhooks": {"certificate": "a", "privateKey": "b"}}, "a certificate without its CA"),
    ({"place": "shoot", "targetKubeconfig__existingSecret": "a", "tls__certManager": {"enabled": True, "issuerRef": {"name": "b"}}}, "into another cluster"),
], ids=str)
def chart_registers_no_webhook_whose_certificate_no_api_server_trusts(values, text):
    assert text in refused(GRM, *set_(**values, config__webhooks__projectedTokenMount={"enabled": True}))
    render(GRM, "a", *set_(**values))  # without webhooks nobody needs the CA
    with_ca = render(GRM, "a", *set_(**values, config__webhooks__projectedTokenMount={"enabled": True}), "--set=global.config.server.webhooks.ca=CA")
    webhooks = [w for o in registrations(with_ca) for w in o["webhooks"]]
    assert {w["clientConfig"]["caBundle"] for w in webhooks} == {base64.b64encode(b"CA").decode()}


def chart_with_a_source_kubeconfig_keeps_its_service_account():
    """spec 71 §12.3 no. 12."""
    objects = case(GRM, "two-clusters").objects()
    spec = only(objects, "Deployment")["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == only(objects, "ServiceAccount")["metadata"]["name"] == GRM


def chart_has_a_place_for_each_that_the_command_knows():
    schema = json.loads((CHARTS / GRM / "values.schema.json").read_text())
    places = set(schema["properties"]["global"]["properties"]["place"]["enum"])
    assert places == {path.stem for path in (ROOT / "deploy" / "webhooks").glob("*.yaml")} - {"authorizer"}
    assert places == {at.place for at in cases(GRM)}, "each place has a case"


def chart_knows_the_path_of_each_webhook():
    from_files = {re.sub(r"/validate-.*", "/validate-", path) if "/webhooks/" not in path else path
                  for file in (ROOT / "deploy" / "webhooks").glob("*.yaml") if file.stem != "authorizer"
                  for path in re.findall(r"/(?:webhooks/|validate-)[a-z0-9-]+", re.sub("#.*", "", file.read_text()))}
    helpers = (CHARTS / GRM / "templates" / "_webhooks.tpl").read_text()
    paths = dict(re.findall(r"^(\w+): (/\S+)$", helpers, re.MULTILINE))
    keys = set(re.findall(r"^\| `webhooks\.(\w+)\.enabled`", (ROOT / "docs/reference/keys.md").read_text(), re.MULTILINE))
    assert set(paths.values()) == from_files
    assert set(paths) == keys - {"nodeAgentAuthorizer"}


# --- what gardenlet and gardener-operator deploy ------------------------------------------------------------------------------


def chart_spreads_two_replicas_as_gardener_does():
    """spec 71 §3.3."""
    constraints = only(case(GRM, "seed").objects(), "Deployment")["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert [(c["topologyKey"], c["whenUnsatisfiable"], c.get("minDomains")) for c in constraints] == [
        ("kubernetes.io/hostname", "ScheduleAnyway", None), ("topology.kubernetes.io/zone", "DoNotSchedule", 2)]
    assert "topologySpreadConstraints" not in only(case(GRM, "defaults").objects(), "Deployment")["spec"]["template"]["spec"]


def chart_lets_a_hosted_program_apply_its_registration_and_rights_to_the_target():
    """spec 71 §5.1, §6.4."""
    objects = case(GRM, "shoot").objects()
    bundle = only(objects, "ManagedResource")
    binding = only(delivered(objects), "ClusterRoleBinding")
    assert bundle["metadata"]["name"] == "shoot-core-gardener-resource-manager"
    assert bundle["spec"]["injectLabels"] == {"shoot.gardener.cloud/no-cleanup": "true"}
    assert bundle["spec"]["secretRefs"] == [{"name": only([o for o in objects if o["metadata"]["name"].startswith("managedresource-")], "Secret")["metadata"]["name"]}]
    assert binding["roleRef"]["name"] == "cluster-admin"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": GRM, "namespace": "kube-system"}]
    assert binding["metadata"]["annotations"] == {"resources.gardener.cloud/keep-object": "true"}
    assert not of_kind(objects, "MutatingWebhookConfiguration") and not of_kind(objects, "ClusterRole")


def chart_grants_a_hosted_program_no_more_in_the_source_than_gardener_does():
    """spec 71 §5.1, except Events, which it may also patch."""
    limits = {("resources.gardener.cloud", "managedresources"): "get list watch update patch", ("resources.gardener.cloud", "managedresources/status"): "get list watch update patch",
              ("", "secrets"): "get list watch update patch", ("", "events"): "create patch", ("coordination.k8s.io", "leases"): "create get watch update",
              ("machine.sapcloud.io", "machines"): "get list watch"}
    objects = case(GRM, "shoot").objects()
    for role in of_kind(objects, "Role"):
        assert role["metadata"]["namespace"] == "shoot--demo--a"
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    assert set(rule["verbs"]) <= set(limits[group, resource].split()), rule


def chart_role_of_gardener_controller_manager_is_the_table_of_the_specification():
    """spec 80 §18."""
    text = (ROOT / "docs/spec/80-gcm-process.md").read_text()
    rows = re.search(r"## 18\. .*?\n\|---.*?\n(.*?)\n\n", text, re.DOTALL).group(1).splitlines()
    expected, group = set(), ""
    for row in rows:
        first, resources, verbs, _ = (cell.strip() for cell in row.strip("|").split(" | "))
        group = first.strip("` ") or group
        if group.startswith("(non-resource)"):
            continue
        api = "" if group == "core" else group
        resources = resources.replace("their `…/status`", "`cloudprofiles/status`, `namespacedcloudprofiles/status`").replace("`…/approval`", "`certificatesigningrequests/approval`")
        # A cell has one part for each kind with other verbs.
        kinds, granted_to = resources.split("; "), verbs.replace("; own Lease:", ",").split("; ")
        for names, granted in zip(kinds, granted_to, strict=True):
            for name in re.findall(r"`([a-z]+(?:/[a-z]+)?)`", names.split("kubernetes.io")[0]):
                for verb in re.findall(r"[a-z]+", granted):
                    expected |= {(api, name, v) for v in (("get", "list", "watch") if verb == "r" else (verb,))}
    objects = case(GCM, "defaults").objects()
    rules = [r for kind in ("ClusterRole", "Role") for o in of_kind(objects, kind) for r in o["rules"]]
    actual = {(g, n, v) for r in rules for g in r.get("apiGroups", []) for n in r.get("resources", []) for v in r["verbs"]}
    assert actual == expected
    lease = [r for o in of_kind(objects, "Role") for r in o["rules"] if "update" in r["verbs"]]
    assert [r["resourceNames"] for r in lease] == [["gardener-controller-manager-leader-election"]]


def chart_grants_only_what_the_parts_need_that_are_on():
    def verbs(objects, resource, group=""):
        rules = [r for o in of_kind(objects, "ClusterRole") if o["metadata"]["name"].endswith("-target") for r in o["rules"]]
        return {v for r in rules if group in r["apiGroups"] and resource in r["resources"] for v in r["verbs"]}
    parts = set_(rbac__target__rights="parts")
    off = render(GRM, "a", *parts)
    on = render(GRM, "a", *parts, *set_(config__controllers__tokenRequestor={"enabled": True}))
    deleting = render(GRM, "a", *parts, *set_(config__controllers__tokenRequestor={"enabled": True, "deleteServiceAccounts": True}))
    assert verbs(off, "serviceaccounts") == set() and "*" not in verbs(off, "*", "*")
    assert verbs(on, "serviceaccounts") == {"get", "list", "watch", "create", "update", "patch"}
    assert verbs(deleting, "serviceaccounts") - verbs(on, "serviceaccounts") == {"delete"}
    assert "*" in verbs(render(GRM, "a"), "*", "*")


@pytest.mark.parametrize(("part", "verbs"), [
    ({"config__webhooks__nodeAgentAuthorizer": {"enabled": True}}, {"get", "list", "watch"}),
    ({"config__controllers__networkPolicy": {"enabled": True}}, {"list", "watch"}),
], ids=str)
def chart_grants_in_all_namespaces_what_a_part_reads_in_all(part, verbs):
    """spec 61 §11.10, spec 40 §7.10: Pods, whatever namespaces the program watches."""
    objects = render(GRM, "a", *set_(rbac__target__rights="parts", config__targetClientConnection={"namespaces": ["c"]}, **part))
    rules = [r for o in of_kind(objects, "ClusterRole") if o["metadata"]["name"].endswith("-target") for r in o["rules"]]
    assert verbs <= {v for r in rules if "" in r["apiGroups"] and "pods" in r["resources"] for v in r["verbs"]}


SECTIONS = {GRM: {"source", "sourceCluster", "sourceSystem", "election", "target", "targetCluster", "targetSystem", "targetDefault"}, GCM: {"garden", "election"}}


@pytest.mark.parametrize("chart, table", [(GRM, "keys.md"), (GCM, "controller-manager-keys.md")])
def chart_has_rights_for_known_parts_only(chart, table):
    keys = set(re.findall(r"^\| `([^`]+)`", (ROOT / "docs/reference" / table).read_text(), re.MULTILINE))
    for row in yaml.safe_load((CHARTS / chart / "files/rights.yaml").read_text()):
        assert row.keys() <= {"part", "when", "is", "in"} | SECTIONS[chart]
        assert {f"{row['part']}.enabled"} <= keys if "part" in row else True, row
        assert {row.get("when"), row.get("in")} <= keys | {None}, row


# --- monitoring ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chart", [GRM, GCM])
def chart_has_the_alerts_and_dashboards_of_the_repository(chart):
    values = {"serviceMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}, "dashboards": {"enabled": True}}
    objects = render(chart, "garden", f"--set-json=global.{'controller.' if chart == GCM else ''}monitoring={json.dumps(values)}")
    folder = ROOT / "deploy" / "monitoring"
    assert only(objects, "PrometheusRule")["spec"] == yaml.safe_load((folder / f"prometheusrule-{chart}.yaml").read_text())["spec"]
    dashboards = only(objects, "ConfigMap", f"{chart}-dashboards")["data"]
    assert {f"dashboard-{name}": text for name, text in dashboards.items()} == {
        path.name: path.read_text() for path in folder.glob(f"dashboard-{chart}*.json")}


def chart_alerts_follow_the_name_of_the_service():
    values = set_(namePrefix="my-", monitoring__prometheusRule={"enabled": True, "runbook": "https://example.org/r", "disabledAlerts": ["GardenerResourceManagerDown"]})
    rules = [rule for group in only(render(GRM, "garden", *values), "PrometheusRule")["spec"]["groups"] for rule in group["rules"]]
    assert "GardenerResourceManagerDown" not in [rule["alert"] for rule in rules]
    assert all(f'job="my-{GRM}"' in rule["expr"] for rule in rules if "job=" in rule["expr"])
    assert all(rule["annotations"]["runbook_url"].startswith("https://example.org/r#") for rule in rules)


def chart_scrape_gives_series_the_labels_of_the_service():
    """spec 71 scenario 19, §11."""
    objects = case(GRM, "seed").objects()
    monitor, service = only(objects, "ServiceMonitor"), only(objects, "Service")
    assert (monitor["metadata"]["name"], monitor["metadata"]["labels"]["prometheus"]) == (f"seed-{GRM}", "seed")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items(), "it selects the Service"
    endpoint, = monitor["spec"]["endpoints"]
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
    relabeling, = endpoint["relabelings"]
    series = {re.fullmatch(relabeling["regex"], f"__meta_kubernetes_service_label_{label}").group(1): value for label, value in service["metadata"]["labels"].items()}
    assert (relabeling["action"], series["app"]) == ("labelmap", GRM)


# --- values that are wrong ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("chart", "values", "text"), [
    (GRM, {"replicas": 2}, None),
    (GRM, {"tls": {"existing": "a"}}, "existing"),
    (GRM, {"config": {"webhooks": {"seccompProfil": {"enabled": True}}}}, "seccompProfil"),
    (GRM, {"config": {"controllers": {"health": {"syncPeriod": 60}}}}, "syncPeriod"),
    (GRM, {"place": "moon"}, "place"),
    (GRM, {"place": "shoot"}, "global.targetKubeconfig"),
    (GRM, {"config": {"server": {"webhooks": {"certificate": "a"}}}}, "both certificate and privateKey"),
    (GRM, {"tls": {"existingSecret": "a", "certManager": {"enabled": True, "issuerRef": {"name": "b"}}}}, "several sources"),
    (GRM, {"tls": {"certManager": {"enabled": True}}}, "issuerRef.name"),
    (GRM, {"targetKubeconfig": {"existingSecret": "a"}, "config": {"targetClientConnection": {"kubeconfig": "b"}}}, "two kubeconfigs"),
    (GCM, {"controller": {"replica": 2}}, "replica"),
    (GCM, {"controller": {"config": {"controllers": {"bastions": {}}}}}, "bastions"),
    (GCM, {"controller": {"kubeconfig": "a", "kubeconfigSecret": {"existingSecret": "b"}}}, "two kubeconfigs"),
    (GCM, {"deployment": {"virtualGarden": {"controller": {"user": {"name": "a"}}}}}, "virtualGarden.enabled"),
], ids=str)
def chart_refuses_wrong_values_with_a_reason(chart, values, text):
    argument = f"--set-json=global={json.dumps(values)}"
    if text is None:  # other charts may have values of their own below `global`
        render(chart, "a", argument)
    else:
        assert text in refused(chart, argument)


# --- the package ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chart", [GRM, GCM])
def chart_package_has_what_its_links_point_to(chart, tmp_path):
    """The links lead out of the chart; helm follows them when it packs."""
    helm("package", str(CHARTS / chart), f"--destination={tmp_path}")
    package, = tmp_path.iterdir()
    arguments = [f"--values={file}" for file in case(chart, "everything").files]
    assert helm("template", RELEASE, str(package), "--include-crds", *arguments) == helm("template", RELEASE, str(CHARTS / chart), "--include-crds", *arguments)


@pytest.mark.parametrize("chart", [GRM, GCM])
def chart_passes_helms_lint(chart):
    helm("lint", "--strict", str(CHARTS / chart))


@ALL
def chart_pods_run_without_rights_on_their_node(at):
    for o in at.objects():
        if o["kind"] not in ("Deployment", "Pod"):
            continue
        spec = o["spec"] if o["kind"] == "Pod" else o["spec"]["template"]["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert (spec["securityContext"]["runAsUser"], spec["securityContext"]["seccompProfile"]) == (65532, {"type": "RuntimeDefault"})
        for container in spec["containers"]:
            assert container["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
