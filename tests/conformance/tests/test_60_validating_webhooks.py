"""Deletion protection of definitions and extension objects, and the frame that all admission webhooks share. Spec 60."""
import base64

import pytest

from harness import ApiError, eventually, obj, unique

DELETION = "/webhooks/validate-crd-deletion"
WORKERS = "/validate-extensions-gardener-cloud-v1alpha1-worker"
ANNOTATION = "confirmation.gardener.cloud/deletion"
REFUSAL = 'must have a "confirmation.gardener.cloud/deletion" annotation to delete'
EXTENSIONS = "extensions.gardener.cloud"

# plural -> (group, version, kind, namespaced)
PROTECTED = {
    "backupbuckets": (EXTENSIONS, "v1alpha1", "BackupBucket", False), "backupentries": (EXTENSIONS, "v1alpha1", "BackupEntry", False),
    "containerruntimes": (EXTENSIONS, "v1alpha1", "ContainerRuntime", True), "controlplanes": (EXTENSIONS, "v1alpha1", "ControlPlane", True),
    "dnsrecords": (EXTENSIONS, "v1alpha1", "DNSRecord", True), "extensions": (EXTENSIONS, "v1alpha1", "Extension", True),
    "infrastructures": (EXTENSIONS, "v1alpha1", "Infrastructure", True), "networks": (EXTENSIONS, "v1alpha1", "Network", True),
    "operatingsystemconfigs": (EXTENSIONS, "v1alpha1", "OperatingSystemConfig", True),
    "selfhostedshootexposures": (EXTENSIONS, "v1alpha1", "SelfHostedShootExposure", True), "workers": (EXTENSIONS, "v1alpha1", "Worker", True),
    "etcds": ("druid.gardener.cloud", "v1alpha1", "Etcd", True),
}
ROWS = [(g, v, plural, kind) for plural, (g, v, kind, _) in PROTECTED.items()] + [
    ("apiextensions.k8s.io", v, "customresourcedefinitions", "CustomResourceDefinition") for v in ("v1", "v1beta1")]


@pytest.fixture(scope="module")
def grm(start, source):
    return start(source, config={"webhooks": {"crdDeletionProtection": {"enabled": True}, "extensionValidation": {"enabled": True}}})


@pytest.fixture(scope="module")
def kinds(k):
    """The definitions of the kinds that cases store in the cluster."""
    for plural in ("infrastructures", "workers"):
        group, version, kind, namespaced = PROTECTED[plural]
        k.crd(group, version, kind, plural, namespaced)


@pytest.fixture
def webhook(k):
    """Registers one webhook in the API server, and removes it again."""
    created = []

    def register(grm, path, operations, group, version, plural, **selectors):
        name = unique("validating")
        k.create(obj("ValidatingWebhookConfiguration", None, name, webhooks=[{
            "name": f"{plural}.case.example.org", "admissionReviewVersions": ["v1beta1", "v1"], "sideEffects": "None", "failurePolicy": "Fail",
            "matchPolicy": "Exact", "timeoutSeconds": 10,
            "clientConfig": {"url": grm.url(path), "caBundle": base64.b64encode(grm.ca.cert_pem).decode()},
            "rules": [{"apiGroups": [group], "apiVersions": [version], "resources": [plural], "operations": operations}], **selectors}]))
        created.append(name)

    yield register
    for name in created:
        k.delete("ValidatingWebhookConfiguration", None, name)


def delete(grm, plural, old, *, kind=None, group=EXTENSIONS, version="v1alpha1", name="x", namespace="", operation="DELETE", **kw):
    kind = kind or PROTECTED[plural][2]
    return grm.review(DELETION, None, operation=operation, old=old, resource=(group, version, plural), kind=(group, version, kind),
                      name=name, namespace=namespace, **kw)


def marked(value=None, name="x"):
    """Any object; the handler looks at its annotations only."""
    return {"apiVersion": "example.org/v1", "kind": "Any", "metadata": {"name": name, **({"annotations": {ANNOTATION: value}} if value is not None else {})}}


def stored(k, ns, plural, name, confirmed):
    group, version, kind, _ = PROTECTED[plural]
    return k.create(obj(kind, ns, name, annotations={ANNOTATION: "true"} if confirmed else None, spec={}))


def refused(response):
    """The message may go on after the sentence that clients look for."""
    status = response["status"]
    return not response["allowed"] and (status["code"], status.get("reason")) == (403, "Forbidden") and status["message"].startswith(REFUSAL)


def admitted(response, message=None):
    return response["allowed"] and response["status"]["code"] == 200 and response["status"].get("message") == message


# --- what is protected -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("group,version,plural,kind", ROWS, ids=[f"{p}-{v}" for _, v, p, _ in ROWS])
def test_a_protected_object_is_deleted_only_with_a_confirmation(grm, group, version, plural, kind):
    """spec 60 §2.2, §2.3; scenarios 1, 2, 4."""
    request = {"kind": kind, "group": group, "version": version}
    assert refused(delete(grm, plural, marked(), **request))
    assert admitted(delete(grm, plural, marked("true"), **request))


@pytest.mark.parametrize("value,confirmed", [("true", True), ("True", True), ("1", True), ("t", True), ("false", False), ("0", False), ("yes", False), ("", False)])
def test_the_confirmation_is_a_boolean(grm, value, confirmed):
    """spec 60 §2.3 step 5; scenario 3."""
    response = delete(grm, "workers", marked(value))
    assert admitted(response) if confirmed else refused(response)


@pytest.mark.parametrize("group,version,plural,kind", [
    (EXTENSIONS, "v1alpha1", "bastions", "Bastion"), (EXTENSIONS, "v1alpha1", "clusters", "Cluster"),
    ("druid.gardener.cloud", "v1alpha1", "etcdcopybackupstasks", "EtcdCopyBackupsTask"), ("", "v1", "secrets", "Secret")])
def test_any_other_object_may_go(grm, group, version, plural, kind):
    """spec 60 §2.2, §2.3 step 2; scenarios 5, 6."""
    assert admitted(delete(grm, plural, marked(), kind=kind, group=group, version=version), "resource is not deletion-protected")


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "CONNECT"])
def test_only_deletions_are_looked_at(grm, operation):
    """spec 60 §2.3 step 1; scenario 7."""
    assert admitted(delete(grm, "workers", marked(), operation=operation), "operation is not DELETE")


def test_a_deletion_without_any_object_is_an_error(grm):
    """spec 60 §2.3 step 3; scenario 15."""
    response = delete(grm, "workers", None)
    assert not response["allowed"]
    assert response["status"]["code"] == 500 and response["status"]["message"] == "no object found in admission request"
    assert "reason" not in response["status"]


# --- collections -----------------------------------------------------------------------------------------------------

def test_a_collection_goes_when_all_of_its_objects_are_confirmed(grm, kinds, k, ns):
    """spec 60 §2.3 step 3; scenario 8."""
    for name in "abc":
        stored(k, ns, "infrastructures", name, confirmed=True)
    assert admitted(delete(grm, "infrastructures", marked("true", "a"), name="", namespace=ns))


def test_one_unconfirmed_object_keeps_the_whole_collection(grm, kinds, k, ns):
    """spec 60 §2.4; scenario 9: the object of the call is confirmed, another one is not."""
    stored(k, ns, "infrastructures", "a", confirmed=True)
    stored(k, ns, "infrastructures", "b", confirmed=False)
    assert refused(delete(grm, "infrastructures", marked("true", "a"), name="", namespace=ns))


def test_an_empty_collection_may_go(grm, kinds, ns):
    """spec 60 §2.3 step 7; scenario 10."""
    assert admitted(delete(grm, "infrastructures", None, name="", namespace=ns))


# --- in the API server -----------------------------------------------------------------------------------------------

def test_the_api_server_keeps_a_worker_until_its_deletion_is_confirmed(grm, kinds, k, ns, webhook):
    """spec 60 §4; scenarios 1, 2."""
    webhook(grm, DELETION, ["DELETE"], EXTENSIONS, "v1alpha1", "workers", namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": ns}})
    stored(k, ns, "workers", "w", confirmed=False)

    def refusal():
        try:
            k.delete("Worker", ns, "w", dryRun=["All"])
        except ApiError as e:
            return e
    error = eventually(refusal, "the webhook is in effect", timeout=30)
    assert error.status == 403 and error.body["reason"] == "Forbidden" and REFUSAL in error.body["message"]
    with pytest.raises(ApiError):
        k.delete("Worker", ns, "w")
    assert k.get("Worker", ns, "w")

    k.patch("Worker", ns, "w", {"metadata": {"annotations": {ANNOTATION: "true"}}})
    k.delete("Worker", ns, "w")
    assert k.find("Worker", ns, "w") is None


# --- the frame -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("path", [DELETION, WORKERS])
@pytest.mark.parametrize("body,content_type,code,message", [
    (b"", "application/json", 400, "request body is empty"),
    (b"{}", "application/json; charset=utf-8", 400, "contentType=application/json; charset=utf-8, expected application/json"),
    (b"{}", "text/plain", 400, "contentType=text/plain, expected application/json"),
    (b"{", "application/json", 400, None),
    (b" " * 7340032, "application/json", 413, "request entity is too large; limit is 7340032 bytes"),
], ids=["empty", "parameters", "text", "broken", "seven-mebibytes"])
def test_a_request_that_cannot_be_read_is_answered_inside_of_http_200(grm, path, body, content_type, code, message):
    """spec 60 §1.1; scenarios 18, 19."""
    r = grm.post(path, body, headers={"Content-Type": content_type})

    assert r.status_code == 200
    answer = r.json()
    assert not answer["response"]["allowed"] and answer["response"]["uid"] == "" and answer["response"]["status"]["code"] == code
    assert answer["response"]["status"]["message"] == message if message else answer["response"]["status"]["message"]
    assert "apiVersion" not in answer and "kind" not in answer


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_the_answer_has_the_version_and_the_uid_of_the_request(grm, version):
    """spec 60 §1.2; scenario 17."""
    r = grm.post(DELETION, {"apiVersion": f"admission.k8s.io/{version}", "kind": "AdmissionReview", "request": {"uid": "7f3a", "operation": "CREATE"}}).json()

    assert (r["apiVersion"], r["kind"]) == (f"admission.k8s.io/{version}", "AdmissionReview")
    assert r["response"]["uid"] == "7f3a" and r["response"]["allowed"]


@pytest.mark.dev
def test_answers_are_declared_as_json(grm):
    """spec 60 §1.2. The Go implementation leaves the content type to sniffing and says text/plain."""
    r = grm.post(DELETION, {"request": {"uid": "u", "operation": "CREATE"}})
    assert r.headers["content-type"].split(";")[0] == "application/json"


def test_a_webhook_that_is_not_enabled_has_no_path(start, source, grm):
    """spec 60 scenario 21."""
    other = start(source, config={"webhooks": {"extensionValidation": {"enabled": True}}})

    assert other.post(DELETION, {}).status_code == 404
    assert other.post(WORKERS, {}).status_code == 200
    assert grm.post(DELETION, {}).status_code == 200
    assert grm.post("/webhooks/unknown", {}).status_code == 404


@pytest.mark.dev
def test_etcds_are_validated_under_the_path_of_the_chart_too(grm):
    """spec 60 §4.1; scenario 23. The Go implementation answers 404."""
    etcd = {"apiVersion": "druid.gardener.cloud/v1alpha1", "kind": "Etcd", "metadata": {"name": "main", "namespace": "garden"},
            "spec": {"backup": {"store": {"prefix": "nothing"}}}}
    review = {"resource": ("druid.gardener.cloud", "v1alpha1", "etcds"), "kind": ("druid.gardener.cloud", "v1alpha1", "Etcd")}

    for path in ("/validate-druid-gardener-cloud-v1alpha1-etcd", "/validate-extensions-gardener-cloud-v1alpha1-etcd"):
        response = grm.review(path, etcd, **review)
        assert not response["allowed"] and response["status"]["code"] == 422, path
        etcd_ok = {**etcd, "spec": {"backup": {"store": {"prefix": "garden/main"}}}}
        assert grm.review(path, etcd_ok, **review)["allowed"], path
