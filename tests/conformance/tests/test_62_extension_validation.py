"""The field rules of the extension kinds: the tables of spec 62, one row each."""
import base64
import copy
from typing import Any

import pytest

from harness import ApiError, eventually, obj, pretty, unique

EXTENSIONS = "extensions.gardener.cloud"
GONE = object()
REASONS = {"Required value": "FieldValueRequired", "Invalid value": "FieldValueInvalid", "Unsupported value": "FieldValueNotSupported", "Forbidden": "FieldValueForbidden",
           "Duplicate value": "FieldValueDuplicate", "Too long": "FieldValueTooLong"}

SECRET = {"name": "cloudprovider", "namespace": "shoot--a--b"}
# kind -> (plural, a valid spec)
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "BackupBucket": ("backupbuckets", {"type": "local", "region": "r", "secretRef": SECRET}),
    "BackupEntry": ("backupentries", {"type": "local", "region": "r", "bucketName": "b", "secretRef": SECRET}),
    "Bastion": ("bastions", {"type": "local", "userData": "IyEvYmluL3No", "ingress": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}),
    "ContainerRuntime": ("containerruntimes", {"type": "gvisor", "binaryPath": "/usr/bin", "workerPool": {"name": "w", "selector": {"matchLabels": {"a": "b"}}}}),
    "ControlPlane": ("controlplanes", {"type": "local", "region": "r", "secretRef": SECRET}),
    "DNSRecord": ("dnsrecords", {"type": "route53", "secretRef": SECRET, "name": "api.example.com", "recordType": "A", "values": ["10.0.0.1"], "ttl": 120}),
    "Etcd": ("etcds", {"replicas": 1, "backup": {"store": {"prefix": "shoot--a--b--uid/x", "provider": "aws"}}}),
    "Extension": ("extensions", {"type": "shoot-dns-service"}),
    "Infrastructure": ("infrastructures", {"type": "local", "region": "r", "secretRef": SECRET}),
    "Network": ("networks", {"type": "calico", "podCIDR": "100.64.0.0/12", "serviceCIDR": "10.96.0.0/12"}),
    "OperatingSystemConfig": ("operatingsystemconfigs", {"type": "ubuntu", "purpose": "reconcile", "units": [{"name": "kubelet.service"}], "files": [
        {"path": "/a", "content": {"inline": {"data": "x"}}}]}),
    "SelfHostedShootExposure": ("selfhostedshootexposures", {"type": "local", "port": 443, "endpoints": [
        {"nodeName": "n", "addresses": [{"type": "InternalIP", "address": "10.1.2.3"}]}]}),
    "Worker": ("workers", {"type": "local", "region": "r", "secretRef": SECRET, "pools": [
        {"name": "p", "machineType": "m", "machineImage": {"name": "i", "version": "1"}, "minimum": 1, "maximum": 2}]}),
}
CLUSTER_SCOPED = ("BackupBucket", "BackupEntry")


@pytest.fixture(scope="module")
def grm(start, source):
    return start(source, config={"webhooks": {"extensionValidation": {"enabled": True}}})


def group_of(kind):
    return "druid.gardener.cloud" if kind == "Etcd" else EXTENSIONS


def path_of(kind):
    return f"/validate-{group_of(kind).replace('.', '-')}-v1alpha1-{kind.lower()}"


def valid(kind, **metadata):
    meta = {"name": "x", "uid": "u-1", "resourceVersion": "5", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
    if kind not in CLUSTER_SCOPED:
        meta["namespace"] = "shoot--a--b"
    return {"apiVersion": f"{group_of(kind)}/v1alpha1", "kind": kind, "metadata": {**meta, **metadata}, "spec": copy.deepcopy(KINDS[kind][1])}


def edited(o, changes):
    """A copy of `o` with values at dotted paths (list positions are numbers); GONE removes."""
    o = copy.deepcopy(o)
    for path, value in changes.items():
        *way, last = path if isinstance(path, tuple) else path.split(".")
        at = o
        for step in way:
            at = at[int(step)] if isinstance(at, list) else at.setdefault(step, {})
        if value is GONE:
            at.pop(last, None)
        elif isinstance(at, list):
            at[int(last)] = value
        else:
            at[last] = value
    return o


def post(grm, kind, new, old=None, operation=None):
    gvk = (group_of(kind), "v1alpha1")
    return grm.review(path_of(kind), new, old=old, operation=operation or ("UPDATE" if old else "CREATE"), resource=(*gvk, KINDS[kind][0]), kind=(*gvk, kind))


def errors(grm, kind, new, old=None):
    """The texts of all errors; the whole answer must be consistent."""
    response = post(grm, kind, new, old)
    status = response["status"]
    if response["allowed"]:
        assert status["code"] == 200 and "message" not in status, pretty(response)
        return []
    assert (status["status"], status["code"], status["reason"]) == ("Failure", 422, "Invalid"), pretty(response)
    details = status["details"]
    assert (details["group"], details["kind"], details.get("name", "")) == (group_of(kind), kind, new["metadata"].get("name", ""))
    texts = [f'{c["field"]}: {c["message"]}' for c in details["causes"]]
    assert [c["reason"] for c in details["causes"]] == [REASONS[c["message"].split(":")[0]] for c in details["causes"]]
    once = list(dict.fromkeys(texts))
    assert status["message"] == f'{kind}.{group_of(kind)} "{details.get("name", "")}" is invalid: ' + (once[0] if len(once) == 1 else "[" + ", ".join(once) + "]")
    return texts


def required(*fields):
    return [f"{f}: Required value: field is required" for f in fields]


def immutable(**fields):
    return [f"spec.{f}: Invalid value: {value}: field is immutable" for f, value in fields.items()]


# --- the frame -------------------------------------------------------------------------------------------------------

def test_a_refusal_is_a_complete_status(grm):
    """spec 62 §2.2; scenario 1."""
    response = post(grm, "BackupBucket", {"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "BackupBucket", "metadata": {"name": "bucket"}})

    assert not response["allowed"] and response["uid"] == "uid-1"
    status = response["status"]
    assert {k: status[k] for k in ("status", "code", "reason")} == {"status": "Failure", "code": 422, "reason": "Invalid"}
    assert status["message"] == ('BackupBucket.extensions.gardener.cloud "bucket" is invalid: [spec.type: Required value: field is required, '
                                 'spec.region: Required value: field is required, spec.secretRef.name: Required value: field is required]')
    assert status["details"] == {"group": "extensions.gardener.cloud", "kind": "BackupBucket", "name": "bucket", "causes": [
        {"reason": "FieldValueRequired", "message": "Required value: field is required", "field": f} for f in ("spec.type", "spec.region", "spec.secretRef.name")]}


@pytest.mark.parametrize("kind", KINDS)
def test_a_valid_object_is_admitted(grm, kind):
    """spec 62 §1, §2.2."""
    assert errors(grm, kind, valid(kind)) == []
    assert errors(grm, kind, valid(kind), valid(kind)) == []


@pytest.mark.parametrize("operation,new,old,code", [
    ("CREATE", None, None, 400), ("CREATE", "text", None, 400), ("UPDATE", "ok", None, 400), ("UPDATE", "ok", 5, 400), ("UPDATE", None, "ok", 400),
    ("DELETE", None, "bad", None), ("DELETE", None, None, 400), ("DELETE", None, [], 400), ("CONNECT", None, None, None), ("EXPLODE", "ok", None, 400)])
def test_operations_need_their_objects(grm, operation, new, old, code):
    """spec 62 §2.3; scenarios 32, 33."""
    objects = {"ok": valid("Worker"), "bad": edited(valid("Worker"), {"spec": {}})}
    response = post(grm, "Worker", objects.get(new, new) if isinstance(new, str) else new, objects.get(old, old) if isinstance(old, str) else old, operation)

    assert (response["allowed"], response["status"]["code"]) == (code is None, code or 200), pretty(response)
    if code:
        assert response["status"]["message"]
    if operation == "EXPLODE":
        assert response["status"]["message"] == 'unknown operation "EXPLODE"'
    if new is None and operation == "CREATE":
        assert response["status"]["message"] == "there is no content to decode"


@pytest.mark.parametrize("kind,expected", [
    ("BackupBucket", required("spec.type", "spec.region", "spec.secretRef.name")),
    ("BackupEntry", required("spec.type", "spec.bucketName", "spec.region", "spec.secretRef.name")),
    ("Bastion", required("spec.type", "spec.userData", "spec.ingress")),
    ("ContainerRuntime", required("spec.type", "spec.binaryPath", "spec.workerPool.name")),
    ("ControlPlane", required("spec.type", "spec.region", "spec.secretRef.name")),
    ("DNSRecord", [*required("spec.type", "spec.secretRef.name"), "spec.name: Required value",
                   'spec.recordType: Unsupported value: "": supported values: "A", "AAAA", "CNAME", "TXT"', *required("spec.values")]),
    ("Etcd", []),
    ("Extension", required("spec.type")),
    ("Infrastructure", required("spec.type", "spec.region", "spec.secretRef.name")),
    ("Network", required("spec.type", "spec.podCIDR", "spec.serviceCIDR")),
    ("OperatingSystemConfig", required("spec.purpose")),
    ("SelfHostedShootExposure", [*required("spec.type"), "spec.port: Invalid value: 0: must be between 1 and 65535, inclusive", *required("spec.endpoints")]),
    ("Worker", required("spec.type", "spec.region", "spec.secretRef.name"))])
def test_an_empty_spec_lacks_these_fields(grm, kind, expected):
    """spec 62 §4 to §10."""
    assert errors(grm, kind, edited(valid(kind), {"spec": {}})) == expected
    assert errors(grm, kind, edited(valid(kind), {"spec": GONE})) == expected


@pytest.mark.parametrize("kind,changes,expected", [
    ("BackupBucket", {"type": "new", "region": "new"}, immutable(type='"new"', region='"new"')),
    ("BackupEntry", {"type": "new"}, immutable(type='"new"')),
    ("Bastion", {"type": "new"}, immutable(type='"new"')),
    ("ContainerRuntime", {"type": "new", "workerPool.name": "new"}, immutable(**{"type": '"new"', "workerPool.name": '"new"'})),
    ("ControlPlane", {"type": "new", "region": "new"}, immutable(type='"new"', region='"new"')),
    ("DNSRecord", {"type": "new", "name": "b.example.com", "recordType": "TXT"}, immutable(type='"new"', name='"b.example.com"', recordType='"TXT"')),
    ("Etcd", {"backup.store.prefix": "x/shoot--a--b", "memberNamePrefix": "m"}, immutable(**{"backup.store.prefix": '"x/shoot--a--b"', "memberNamePrefix": '"m"'})),
    ("Extension", {"type": "new"}, immutable(type='"new"')),
    ("Infrastructure", {"type": "new", "region": "new"}, immutable(type='"new"', region='"new"')),
    ("Network", {"type": "new", "podCIDR": "10.0.0.0/16", "serviceCIDR": "10.1.0.0/16"}, immutable(type='"new"', podCIDR='"10.0.0.0/16"', serviceCIDR='"10.1.0.0/16"')),
    ("OperatingSystemConfig", {"type": "new", "purpose": "provision"}, immutable(type='"new"', purpose='"provision"')),
    ("SelfHostedShootExposure", {"type": "new"}, immutable(type='"new"')),
    ("Worker", {"type": "new", "region": "new"}, immutable(type='"new"', region='"new"'))])
def test_these_fields_never_change(grm, kind, changes, expected):
    """spec 62 §2.6, §4 to §10; scenario 2."""
    assert errors(grm, kind, edited(valid(kind), {f"spec.{k}": v for k, v in changes.items()}), valid(kind)) == expected


def test_the_user_data_of_a_bastion_never_changes(grm):
    """spec 62 §4. The value shown is the new user data or, better, something in its stead."""
    (text,) = errors(grm, "Bastion", edited(valid("Bastion"), {"spec.userData": "bmV3"}), valid("Bastion"))
    assert text.startswith("spec.userData: Invalid value: ") and text.endswith(": field is immutable")


@pytest.mark.parametrize("kind,changes", [
    ("BackupEntry", {"bucketName": "new", "region": "new", "secretRef.name": "new", "class": "garden"}), ("Bastion", {"ingress": [{"ipBlock": {"cidr": "not checked"}}]}),
    ("ContainerRuntime", {"binaryPath": "/new", "workerPool.selector": {}}), ("ControlPlane", {"providerConfig": {"any": 1}, "secretRef": {"name": "new"}}),
    ("DNSRecord", {"values": ["10.0.0.2", "::1"], "ttl": 0, "zone": "z", "region": "r", "secretRef.name": "new"}), ("Infrastructure", {"sshPublicKey": "bmV3", "class": "seed"}),
    ("OperatingSystemConfig", {"units": [], "files": [], "providerConfig": {"a": "b"}}), ("SelfHostedShootExposure", {"port": 1, "endpoints": [{"nodeName": "m"}]}),
    ("Worker", {"pools": [], "secretRef": {"name": "new"}}), ("Etcd", {"replicas": 3, "backup.store.provider": "gcp"})])
def test_all_else_may_change(grm, kind, changes):
    """spec 62 §4 to §10."""
    assert errors(grm, kind, edited(valid(kind), {f"spec.{k}": v for k, v in changes.items()}), valid(kind)) == []


NOUNS = {"BackupBucket": "backup bucket", "BackupEntry": "backup entry", "Bastion": "bastion", "ContainerRuntime": "container runtime", "ControlPlane": "control plane",
         "DNSRecord": "dns record", "Extension": "extension", "Infrastructure": "infrastructure", "Network": "network", "OperatingSystemConfig": "operatingsystemconfig",
         "SelfHostedShootExposure": "SelfHostedShootExposure", "Worker": "worker"}


@pytest.mark.parametrize("kind", NOUNS)
def test_the_spec_of_a_deleting_object_stands_still(grm, kind):
    """spec 62 §2.5; scenarios 3, 4."""
    deleting = {"deletionTimestamp": "2026-01-02T00:00:00Z", "deletionGracePeriodSeconds": 0, "finalizers": ["a.example.org/x", "b.example.org/y"]}
    old = valid(kind, **deleting)

    (text,) = errors(grm, kind, edited(old, {"spec.type": "new"}), old)
    assert text.startswith(f"spec: Forbidden: cannot update {NOUNS[kind]} spec if deletion timestamp is set. Requested changes: ")
    assert errors(grm, kind, edited(old, {"metadata.finalizers": ["b.example.org/y"], "metadata.labels": {"a": "b"}, "metadata.resourceVersion": "6"}), old) == []


def test_the_spec_of_a_deleting_etcd_stands_still(grm):
    """spec 62 §2.5; scenario 5."""
    old = valid("Etcd", deletionTimestamp="2026-01-02T00:00:00Z")
    (text,) = errors(grm, "Etcd", edited(old, {"spec.replicas": 3}), old)
    assert text.startswith("spec: Invalid value: {") and text.endswith("}: field is immutable") and '"replicas":3' in text
    assert errors(grm, "Etcd", edited(old, {"metadata.annotations": {"a": "b"}}), old) == []


# --- the kinds -------------------------------------------------------------------------------------------------------

IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
SUBDOMAIN = ("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character "
             "(e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")


@pytest.mark.parametrize("changes,expected", [
    ({"name": "*.api.example.com"}, []), ({"name": "*.*.example.com"}, [f'spec.name: Invalid value: "*.example.com": {SUBDOMAIN}']),
    ({"name": "_acme-challenge.a.example.org"}, [f'spec.name: Invalid value: "_acme-challenge.a.example.org": {SUBDOMAIN}']),
    ({"recordType": "TXT", "values": ["abc", ""], "name": "_acme-challenge.a.example.org"}, []),
    ({"recordType": "TXT", "values": ["abc"], "name": "*.example.com"}, [f'spec.name: Invalid value: "*.example.com": {SUBDOMAIN}']),
    ({"recordType": "CNAME", "values": ["a.example.com"], "name": "example."}, ['spec.name: Invalid value: "example": should be a domain with at least two segments separated by dots']),
    ({"recordType": "CNAME", "values": ["a.example.org", "b.example.org"]}, ['spec.values: Invalid value: ["a.example.org","b.example.org"]: CNAME records must have a single value']),
    ({"recordType": "CNAME", "values": ["10"]}, ['spec.values[0]: Invalid value: "10": should be a domain with at least two segments separated by dots']),
    ({"recordType": "a"}, ['spec.recordType: Unsupported value: "a": supported values: "A", "AAAA", "CNAME", "TXT"']),
    ({"values": ["2001:db8::1", "1.2.3.4"]}, []), ({"recordType": "AAAA", "values": ["1.2.3.4"]}, []),
    ({"values": ["1.2.3.4", "example.com"]}, [f'spec.values[1]: Invalid value: "example.com": {IP}']),
    ({"region": "", "zone": ""}, ['spec.region: Invalid value: "": field cannot be empty if specified', 'spec.zone: Invalid value: "": field cannot be empty if specified']),
    ({"ttl": -1}, ["spec.ttl: Invalid value: -1: must be between 0 and 2147483647, inclusive"]), ({"ttl": 2147483647}, []), ({"ttl": GONE}, [])])
def test_dns_records(grm, changes, expected):
    """spec 62 §5; scenarios 7 to 11."""
    assert errors(grm, "DNSRecord", edited(valid("DNSRecord"), {f"spec.{k}": v for k, v in changes.items()})) == expected


@pytest.mark.parametrize("families,pods,services,expected", [
    (["IPv4"], "100.64.0.0/16", "10.0.0.0/16", []), (["IPv6"], "2001:db8:1::/64", "2001:db8:2::/108", []), (["IPv4", "IPv6"], "2001:db8::/64", "10.0.0.0/16", []),
    (["IPv4", "IPv4"], "x", "y", ['spec.ipFamilies[1]: Duplicate value: "IPv4"']),
    (["IPv5"], "x", "", ['spec.ipFamilies[0]: Unsupported value: "IPv5": supported values: "IPv4", "IPv6"']),
    ([], "100.64.0.0/16", "100.64.1.0/24", ['spec.serviceCIDR: Invalid value: "100.64.1.0/24": must not overlap with "spec.podCIDR" ("100.64.0.0/16")']),
    (["IPv6"], "2001:db8::/32", "2001:db8:1::/108", []), ([], "10.1.2.3/33", "10.0.0.0/16", ["spec.podCIDR: Invalid value: \"10.1.2.3/33\": invalid CIDR address: 10.1.2.3/33"]),
    ([], "2001:db8::/32", "10.0.0.0/16", ['spec.podCIDR: Invalid value: "2001:db8::": must be a valid IPv4 address']),
    (["IPv6"], "2001:db8::/32", "10.1.2.3/16", ['spec.serviceCIDR: Invalid value: "10.1.0.0": must be a valid IPv6 address'])])
def test_networks(grm, families, pods, services, expected):
    """spec 62 §6; scenarios 13 to 15."""
    assert errors(grm, "Network", edited(valid("Network"), {"spec.ipFamilies": families, "spec.podCIDR": pods, "spec.serviceCIDR": services})) == expected


@pytest.mark.parametrize("before,after,allowed", [
    (["IPv4"], ["IPv4", "IPv6"], True), (["IPv4", "IPv6"], ["IPv4"], True), (["IPv4"], ["IPv4"], True), (None, [], True), (["IPv4"], ["IPv6", "IPv4"], False), (["IPv6"], ["IPv6", "IPv4"], False),
    (None, ["IPv4"], False)])
def test_families_of_a_network_change_in_one_way_only(grm, before, after, allowed):
    """spec 62 §6, update rule 1; scenario 16."""
    v6 = {"spec.podCIDR": "2001:db8:1::/64", "spec.serviceCIDR": "2001:db8:2::/108"} if before == ["IPv6"] else {}
    old = edited(valid("Network"), {"spec.ipFamilies": GONE if before is None else before, **v6})

    text = f"spec.ipFamilies: Forbidden: unsupported IP family update: oldIPFamilies=[{' '.join(before or [])}], newIPFamilies=[{' '.join(after)}]"
    assert errors(grm, "Network", edited(old, {"spec.ipFamilies": after}), old) == ([] if allowed else [text])


URL_FORM = "; desired format: https://host[:port]"
REGISTRY = "spec.criConfig.containerd.registries"


@pytest.mark.parametrize("cri,expected", [
    ({"name": "containerd", "cgroupDriver": "systemd", "containerd": {"sandboxImage": "pause", "registries": [{"upstream": "docker.io", "server": "https://registry-1.docker.io", "hosts": [
        {"url": "mirror://m.example.org", "capabilities": ["pull", "resolve", "push"]}]}]}}, []),
    ({"containerd": {}}, required("spec.criConfig.containerd.sandboxImage")),
    ({"containerd": {"sandboxImage": "p", "registries": [{"upstream": "_default"}, {"upstream": "_default"}]}}, [f'{REGISTRY}[1].upstream: Duplicate value: "_default"']),
    ({"containerd": {"sandboxImage": "p", "registries": [{"upstream": "reg.example.org:70000"}]}},
     [f"{REGISTRY}[0].upstream: Invalid value: \"reg.example.org:70000\": port '70000' is not valid, valid port must be in the range [1, 65535]"]),
    ({"containerd": {"sandboxImage": "p", "registries": [{"upstream": "a.b", "server": "example.org"}]}},
     [f'{REGISTRY}[0].server: Unsupported value: "": supported values: "http", "https"', f'{REGISTRY}[0].server: Invalid value: "": host must be provided{URL_FORM}']),
    ({"containerd": {"sandboxImage": "p", "registries": [{"upstream": "a.b", "hosts": [{"url": "m.example.org", "capabilities": ["fly"]}]}]}},
     [f'{REGISTRY}[0].hosts[0].url: Invalid value: "": host must be provided{URL_FORM}',
      f'{REGISTRY}[0].hosts[0].capabilities[0]: Unsupported value: "fly": supported values: "push", "pull", "resolve"']),
    ({"containerd": {"sandboxImage": "p", "plugins": [{"path": []}, {"path": ["a"], "op": "remove", "values": {"a": 1}}, {"path": ["a"], "values": [1, 2]}]}},
     ["spec.criConfig.containerd.plugins[0].path: Required value: must provide a path",
      "spec.criConfig.containerd.plugins[1].values: Forbidden: values must not be specified when 'remove' operation is used",
      'spec.criConfig.containerd.plugins[2].values: Invalid value: "[1,2]": provided values must be given in json format'])])
def test_container_runtimes_of_operating_system_configs(grm, cri, expected):
    """spec 62 §7.1 rules 3 to 12, 13a and 13d; scenarios 18 to 22."""
    assert errors(grm, "OperatingSystemConfig", edited(valid("OperatingSystemConfig"), {"spec.criConfig": cri})) == expected


def inline(path, host=None, **content):
    return {"path": path, "content": content or {"inline": {"data": "x"}}, **({"hostName": host} if host else {})}


CONTENT = "either 'secretRef', 'inline' or 'imageRef' must be provided"


@pytest.mark.parametrize("changes,expected", [
    ({"spec.purpose": "destroy"}, ['spec.purpose: Unsupported value: "destroy": supported values: "provision", "reconcile"']),
    ({"spec.purpose": "provision", "spec.criConfig": {"containerd": {}}},
     ["spec.criConfig.containerd: Forbidden: containerd config is not allowed for OperatingSystemConfig with purpose 'provision'"]),
    ({"spec.units": [{"name": ""}, {"name": "u", "dropIns": [{"name": "", "content": ""}]}]}, required("spec.units[0].name", "spec.units[1].dropIns[0].name", "spec.units[1].dropIns[0].content")),
    ({"spec.units": [{"name": "u", "filePaths": ["/a", "/x", "/y"]}], "status": {"extensionFiles": [inline("/x")]}},
     ["spec.units[0].filePaths[2]: Invalid value: \"/y\": 'filePath' requires a matching 'path' in 'spec.files'"]),
    ({"spec.files": [inline(""), {"path": "/b"}]}, [*required("spec.files[0].path"), f"spec.files[1].content: Required value: {CONTENT}"]),
    ({"spec.files": [inline("/a", secretRef={"name": "", "dataKey": ""}), inline("/b", imageRef={}), inline("/c", inline={"encoding": "rot13", "data": ""})]},
     [*required("spec.files[0].content.secretRef.name", "spec.files[0].content.secretRef.dataKey", "spec.files[1].content.imageRef.image", "spec.files[1].content.imageRef.filePathInImage"),
      'spec.files[2].content.inline.encoding: Unsupported value: "rot13": supported values: "", "b64"', *required("spec.files[2].content.inline.data")]),
    ({"spec.files": [inline("/a", "n1"), inline("/a", "n2"), inline("/a")]}, ['spec.files[2].path: Duplicate value: "/a"']),
    ({"spec.files": [inline("/a", "Not-A-Host")]}, [f'spec.files[0].hostName: Invalid value: "Not-A-Host": {SUBDOMAIN}']),
    ({"status": {"extensionFiles": [inline("/a")], "extensionUnits": [{"name": ""}]}}, [*required("status.extensionUnits[0].name"), 'status.extensionFiles[0].path: Duplicate value: "/a"'])])
def test_files_and_units_of_operating_system_configs(grm, changes, expected):
    """spec 62 §7.1 rules 1 to 4 and 14 to 25, §7.2; scenarios 17, 23 to 25."""
    assert errors(grm, "OperatingSystemConfig", edited(valid("OperatingSystemConfig"), changes)) == expected


def test_a_file_with_two_sources_is_one_error(grm):
    """spec 62 §7.1 rule 20; scenario 25. The value shown is the content or, better, something in its stead."""
    (text,) = errors(grm, "OperatingSystemConfig", edited(valid("OperatingSystemConfig"), {"spec.files": [inline("/a", inline={"data": ""}, imageRef={"image": ""})]}))
    assert text.startswith("spec.files[0].content: Invalid value: ") and text.endswith(f": {CONTENT}, not multiple at the same time")


REFERENCE = {"apiVersion": "v1", "kind": "Secret", "namespace": "shoot--a--b", "name": "s"}


@pytest.mark.parametrize("changes,expected", [
    ({"credentialsRef": REFERENCE}, []),
    ({"credentialsRef": {**REFERENCE, "kind": "ConfigMap"}},
     ['spec.credentialsRef: Unsupported value: {"Group":"","Version":"v1","Kind":"ConfigMap"}: supported values: "/v1, Kind=Secret"']),
    ({"credentialsRef": {**REFERENCE, "namespace": "other"}}, ['spec.credentialsRef.namespace: Invalid value: "other": must equal metadata.namespace']),
    ({"port": 65536}, ["spec.port: Invalid value: 65536: must be between 1 and 65535, inclusive"]),
    ({"endpoints": [{"nodeName": "", "addresses": [{"type": "", "address": ""}]}]}, required("spec.endpoints[0].nodeName", "spec.endpoints[0].addresses[0].type", "spec.endpoints[0].addresses[0].address")),
    ({"endpoints": [{"nodeName": "n", "addresses": [{"type": "Foo", "address": "x"}]}]},
     ['spec.endpoints[0].addresses[0].type: Unsupported value: "Foo": supported values: "ExternalDNS", "ExternalIP", "Hostname", "InternalDNS", "InternalIP"',
      'spec.endpoints[0].addresses[0].address: Invalid value: "x": invalid address for unsupported address type "Foo"']),
    ({"endpoints": [{"nodeName": "n", "addresses": [{"type": "ExternalIP", "address": "n.example.org"}, {"type": "Hostname", "address": "n.example.org"}]}]},
     [f'spec.endpoints[0].addresses[0].address: Invalid value: "n.example.org": {IP}'])])
def test_self_hosted_shoot_exposures(grm, changes, expected):
    """spec 62 §8; scenarios 26, 27."""
    assert errors(grm, "SelfHostedShootExposure", edited(valid("SelfHostedShootExposure"), {f"spec.{k}": v for k, v in changes.items()})) == expected


@pytest.mark.parametrize("pool,expected", [
    ({"architecture": "arm64"}, []), ({"architecture": "riscv64"}, ['spec.pools[1].architecture: Unsupported value: "riscv64": supported values: "amd64", "arm64"']),
    ({"name": "", "machineType": "", "machineImage": {}}, required("spec.pools[1].machineType", "spec.pools[1].machineImage.name", "spec.pools[1].machineImage.version", "spec.pools[1].name")),
    ({"nodeTemplate": {"capacity": {"cpu": "1500m", "memory": "1.5Gi", "nvidia.com/gpu": "2"}}}, []),
    ({"nodeTemplate": {"capacity": {"nvidia.com/gpu": "1500m"}}}, ['spec.pools[1].nodeTemplate.capacity.nvidia.com/gpu: Invalid value: "1500m": must be an integer']),
    ({"nodeTemplate": {"capacity": {"cpu": "-1"}}}, ['spec.pools[1].nodeTemplate.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0'])])
def test_workers(grm, pool, expected):
    """spec 62 §9; scenarios 28, 29."""
    worker = valid("Worker")
    worker["spec"]["pools"].append({**worker["spec"]["pools"][0], "name": "second", **pool})
    assert errors(grm, "Worker", worker) == expected


@pytest.mark.parametrize("store,expected", [
    ({"prefix": "shoot--a--b--uid/x"}, []), ({"prefix": "foo"}, ['spec.backup.store.prefix: Invalid value: "foo": must contain object name and namespace']),
    ({"prefix": "shoot--a--b/etc", "provider": "Local"}, ['spec.backup.store.prefix: Invalid value: "shoot--a--b/etc": must contain object name and namespace']),
    ({"prefix": "shoot--a--b/x", "provider": "floppy"}, ["spec.backup.store.provider: Invalid value: \"floppy\": unsupported storage provider: 'floppy'"])])
def test_etcds(grm, store, expected):
    """spec 62 §10; scenario 30."""
    assert errors(grm, "Etcd", edited(valid("Etcd"), {"spec.backup.store": store})) == expected


# --- in the API server -----------------------------------------------------------------------------------------------

def test_the_api_server_hands_the_causes_on(grm, k, ns):
    """spec 62 §2.2 with the webhook configuration of spec 60 §4."""
    k.crd(EXTENSIONS, "v1alpha1", "Worker", "workers")
    name = unique("validating")
    k.create(obj("ValidatingWebhookConfiguration", None, name, webhooks=[{
        "name": "validation.extensions.workers.resources.gardener.cloud", "admissionReviewVersions": ["v1beta1", "v1"], "sideEffects": "None", "failurePolicy": "Fail",
        "matchPolicy": "Exact", "timeoutSeconds": 10, "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ns}},
        "clientConfig": {"url": grm.url(path_of("Worker")), "caBundle": base64.b64encode(grm.ca.cert_pem).decode()},
        "rules": [{"apiGroups": [EXTENSIONS], "apiVersions": ["v1alpha1"], "resources": ["workers"], "operations": ["CREATE", "UPDATE"]}]}]))
    try:
        def refusal():
            try:
                k.create(obj("Worker", ns, "w", spec={"type": "local", "region": "r"}), dryRun="All")
            except ApiError as e:
                return e
        error = eventually(refusal, "the webhook is in effect", timeout=30)
        assert error.status == 422 and error.body["reason"] == "Invalid"
        assert [c["field"] for c in error.body["details"]["causes"]] == ["spec.secretRef.name"]

        k.create(obj("Worker", ns, "w", spec=KINDS["Worker"][1]))
        with pytest.raises(ApiError) as e:
            k.patch("Worker", ns, "w", {"spec": {"region": "new"}})
        assert e.value.status == 422 and 'spec.region: Invalid value: "new": field is immutable' in e.value.body["message"]
        assert k.patch("Worker", ns, "w", {"spec": {"pools": []}})["spec"]["pools"] == []
    finally:
        k.delete("ValidatingWebhookConfiguration", None, name)
