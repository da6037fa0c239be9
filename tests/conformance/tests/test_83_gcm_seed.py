"""gardener-controller-manager: Seeds (namespace and shared Secrets, backup buckets, extensions, references). Spec 83."""
import pytest

from harness import config_map, consistently, eventually, obj, secret
from harness.gcm import (PROTECTION, aggregated, condition_of, finalize_namespace, finalizers, finish, labels, merge, namespace, seed,
                         workload_identity)
from harness.objects import condition

pytest_plugins = ["harness.gcm_plugin"]
CONFIG = {"controllers": {"seed": {"monitorPeriod": "1h", "shootMonitorPeriod": "2h"}}}
pytestmark = pytest.mark.usefixtures("gcm")
ROLE = "gardener.cloud/role"


@pytest.fixture(autouse=True)
def tidy(request):
    """Shared Secrets go to every Seed: those of a case end with it."""
    if "space" not in request.fixturenames:
        yield
    else:
        g, start = request.getfixturevalue("g"), request.getfixturevalue("space") + "-"
        yield
        for o in g.list("Seed"):
            if (o["metadata"]["name"] + "-").startswith(start):
                g.patch("Seed", None, o["metadata"]["name"], {"metadata": {"finalizers": None}, "spec": {"resources": None}})
                g.delete("Seed", None, o["metadata"]["name"])
        for o in g.list("Secret", "garden"):
            if o["metadata"]["name"].startswith(start):
                g.patch("Secret", "garden", o["metadata"]["name"], {"metadata": {"finalizers": None}})
                g.delete("Secret", "garden", o["metadata"]["name"])


def ns_of(name):
    return f"seed-{name}"


def get(g, name):
    return g.get("Seed", None, name)


def make(g, name, **over):
    """Creates a Seed and waits for its Namespace."""
    o = g.create(seed(name, **over))
    eventually(lambda: g.get("Namespace", None, ns_of(name)))
    return o


# --- A: Namespace and shared Secrets -----------------------------------------------------------------------------------
def owner(o):
    return {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "name": o["metadata"]["name"], "uid": o["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}


def share(g, name, role="foo", data=None, ns="garden", **over):
    over = merge({"labels": {ROLE: role}} if role is not None else {}, over)
    return g.create(secret(ns, name, data or {"k": "v"}, **over))


def copies(g, name, prefix):
    """The Secrets of the Seed's Namespace whose names start so."""
    return {o["metadata"]["name"].removeprefix(prefix + "-"): o for o in g.list("Secret", ns_of(name)) if o["metadata"]["name"].startswith(prefix + "-")}


def like(copy, source):
    return all(copy[k] == source[k] for k in ("type", "data")) and all(copy["metadata"].get(k) == source["metadata"].get(k) for k in ("labels", "annotations"))


def test_a_seed_gets_its_namespace(g, space):
    """spec 83 A.3 step 2, scenario 1."""
    o = make(g, space)
    ns = g.get("Namespace", None, ns_of(space))
    assert labels(ns)[ROLE] == "seed" and ns["metadata"]["ownerReferences"] == [owner(o)]


def test_shared_secrets_are_copied(g, space):
    """spec 83 A.1, A.3 step 5, A.4, scenario 2: those of `garden` with the label, also with an empty one."""
    x = share(g, space + "-x", data={"a": "1", "b": b"\x00\xff"}, type_="example.com/t", labels={"l": "m"}, annotations={"n": "o"}, )
    y = share(g, space + "-y", "")
    share(g, space + "-z", None)
    share(g, space + "-w", ns="default")
    make(g, space)
    eventually(lambda: set(copies(g, space, space)) == {"x", "y"})
    got = copies(g, space, space)
    assert like(got["x"], x) and like(got["y"], y)
    consistently(lambda: set(copies(g, space, space)) == {"x", "y"}, duration=0.5)


PRIVATE = ["kubeconfig", "ssh-keypair", "monitoring", "helm-pull-secret", "oci-ca-bundle", "resource-reference"]


def test_some_roles_are_not_shared(g, space):
    """spec 83 section 1, D-2, scenario 3."""
    for role in PRIVATE:
        share(g, f"{space}-{role}", role)
    share(g, space + "-last", "global-monitoring")
    make(g, space)
    eventually(lambda: set(copies(g, space, space)) == {"last"})
    consistently(lambda: set(copies(g, space, space)) == {"last"}, duration=0.5)


def test_copies_follow_their_source(g, space):
    """spec 83 A.2, A.4, scenario 4: also keys and labels that go."""
    share(g, space + "-x", data={"a": "1", "b": "2"}, labels={"l": "m"}, annotations={"n": "o"})
    make(g, space)
    eventually(lambda: "x" in copies(g, space, space))
    for change in ({"data": {"a": "Mg==", "b": None}}, {"metadata": {"labels": {"p": "q", "l": None}}}, {"metadata": {"annotations": {"n": None}}}):
        x = g.patch("Secret", "garden", space + "-x", change)
        eventually(lambda: like(copies(g, space, space)["x"], x))
    g.delete("Secret", "garden", space + "-x")
    eventually(lambda: not copies(g, space, space))


def test_a_new_shared_secret_reaches_every_seed(g, space):
    """spec 83 A.2, scenario 11."""
    for name in (space, space + "-2"):
        make(g, name)
    x = share(g, space + "-x")
    eventually(lambda: all(like(copies(g, name, space)["x"], x) for name in (space, space + "-2")))
    g.delete("Secret", "garden", space + "-x")
    eventually(lambda: not any(copies(g, name, space) for name in (space, space + "-2")))


@pytest.mark.dev
@pytest.mark.parametrize("role", [None, "kubeconfig"])
def test_what_is_not_shared_any_more_goes(g, space, role):
    """spec 83 A.2, scenario 5: the original keeps the copies until some other shared Secret changes."""
    share(g, space + "-x")
    make(g, space)
    eventually(lambda: "x" in copies(g, space, space))
    g.patch("Secret", "garden", space + "-x", {"metadata": {"labels": {ROLE: role}}})
    eventually(lambda: not copies(g, space, space), timeout=5)


@pytest.mark.parametrize("uid", [None, "other-uid"])
def test_a_namespace_of_somebody_else_is_not_used(gcm, g, space, uid):
    """spec 83 A.3 step 3, A-T1, scenario 6: when it is gone, the Seed gets its own."""
    ns = namespace(ns_of(space))
    if uid:
        ns["metadata"]["ownerReferences"] = [{**owner({"metadata": {"name": space, "uid": uid}})}]
    ns = g.create(ns)
    share(g, space + "-x")
    o = g.create(seed(space))
    eventually(lambda: f'namespace "{ns_of(space)}" is not controlled by seed "{space}"' in gcm.log().replace('\\"', '"'))
    assert not copies(g, space, space) and g.get("Namespace", None, ns_of(space)) == ns

    g.delete("Namespace", None, ns_of(space))
    finalize_namespace(g, ns_of(space))

    eventually(lambda: g.get("Namespace", None, ns_of(space))["metadata"]["ownerReferences"] == [owner(o)] and "x" in copies(g, space, space), timeout=30)


def test_the_label_of_the_namespace_is_restored(g, space):
    """spec 83 A.3 step 4, scenario 7."""
    make(g, space)
    g.patch("Namespace", None, ns_of(space), {"metadata": {"labels": {ROLE: None, "a": "b"}}})
    share(g, space + "-x")
    eventually(lambda: {ROLE: "seed", "a": "b"}.items() <= labels(g.get("Namespace", None, ns_of(space))).items())


def test_other_secrets_of_the_namespace_stay(g, space):
    """spec 83 A.3 step 6, scenario 8: only those with a shared role and without source go."""
    make(g, space)
    share(g, space + "-none", None, ns=ns_of(space))
    share(g, space + "-pull", "helm-pull-secret", ns=ns_of(space))
    share(g, space + "-stale", "foo", ns=ns_of(space))
    share(g, space + "-x")
    eventually(lambda: set(copies(g, space, space)) == {"none", "pull", "x"})


@pytest.mark.dev
@pytest.mark.parametrize("broken", ["type", "immutable"])
def test_a_copy_that_cannot_be_changed_is_replaced(g, space, broken):
    """spec 83 A.4, A-T3, scenario 9: the original fails for ever and stops cleaning up."""
    share(g, space + "-x")
    make(g, space)
    eventually(lambda: "x" in copies(g, space, space))
    over = {"type_": "example.com/other"} if broken == "type" else {"immutable": True}
    g.delete("Secret", ns_of(space), space + "-x")
    g.create(secret(ns_of(space), space + "-x", {"other": "data"}, labels={ROLE: "foo"}, **over))
    share(g, space + "-stale", ns=ns_of(space))
    x = g.patch("Secret", "garden", space + "-x", {"data": {"k": "eHh4"}})
    eventually(lambda: set(copies(g, space, space)) == {"x"} and like(copies(g, space, space)["x"], x))


@pytest.mark.dev
@pytest.mark.parametrize("deed", ["edit", "delete"])
def test_copies_are_restored(g, space, deed):
    """spec 83 A.2, scenario 10: the original waits for another cause."""
    x = share(g, space + "-x")
    make(g, space)
    eventually(lambda: "x" in copies(g, space, space))
    if deed == "edit":
        g.patch("Secret", ns_of(space), space + "-x", {"data": {"k": "eHh4"}})
    else:
        g.delete("Secret", ns_of(space), space + "-x")
    eventually(lambda: like(copies(g, space, space)["x"], x))


# --- B: backup buckets -------------------------------------------------------------------------------------------------
def bucket(g, name, on, error=None):
    o = g.create(obj("BackupBucket", None, name, spec={"provider": {"type": "p", "region": "r"}, **({"seedName": on} if on else {})}))
    if error is not None:
        breaks(g, name, error)
    return o


def broken(name, on, description="foo"):
    """A bucket with an error from the beginning, for `plant`."""
    return obj("BackupBucket", None, name, spec={"provider": {"type": "p", "region": "r"}, "seedName": on}, status={"lastError": {"description": description}})


def breaks(g, name, error, **more):
    """The bucket's extension reports an error, or (None) that there is none."""
    g.patch("BackupBucket", None, name, {"status": {"lastError": error if error is None else {"description": error, **more}}}, "status")


def is_condition(g, name, type_, status, reason=None, message=None):
    c = condition(get(g, name), type_)
    return c.get("status") == status and (reason is None or c["reason"] == reason) and (message is None or c["message"] == message) and c


def buckets_are(g, name, *wanted, timeout=10):
    return eventually(lambda: is_condition(g, name, "BackupBucketsReady", *wanted), f"BackupBucketsReady {wanted}", timeout=timeout)


AVAILABLE = ("True", "BackupBucketsAvailable", "Backup Buckets are available.")


@aggregated
def test_a_seed_with_good_buckets(g, space):
    """spec 83 B.3, scenario 13."""
    for name in (space, space + "-2"):
        make(g, name)
    for i in (1, 2):
        bucket(g, f"{space}-{i}", space)
    c = buckets_are(g, space, *AVAILABLE)
    assert c["lastTransitionTime"] and c["lastUpdateTime"]
    bucket(g, space + "-none", None)
    consistently(lambda: not condition(get(g, space + "-2"), "BackupBucketsReady"), duration=1)


@aggregated
def test_a_broken_bucket_shows_in_the_end(g, space):
    """spec 83 rule T, B.3, scenarios 14, 17: first `Progressing`, after the threshold `False`, and `True` at once when it works again."""
    make(g, space)
    for i in (1, 2):
        bucket(g, f"{space}-{i}", space)
    buckets_are(g, space, *AVAILABLE)

    breaks(g, f"{space}-1", "foo")

    wanted = "BackupBucketsError", f"The following BackupBuckets have issues:\n* Name: {space}-1, Error: foo"
    first = buckets_are(g, space, "Progressing", *wanted)
    second = buckets_are(g, space, "False", *wanted)
    assert second["lastUpdateTime"] == first["lastUpdateTime"] and second["lastTransitionTime"] > first["lastTransitionTime"]

    breaks(g, f"{space}-1", None)

    buckets_are(g, space, *AVAILABLE, timeout=5)


@aggregated
def test_a_first_problem_shows_at_once(g, garden, space):
    """spec 83 rule T, scenario 15: `Progressing` comes only after `True`."""
    make(g, space)
    garden.plant(broken(space + "-1", space))
    seen = set()
    eventually(lambda: (c := condition(get(g, space), "BackupBucketsReady")) and (seen.add(c["status"]) or c["reason"] == "BackupBucketsError"))
    assert seen == {"False"}


@aggregated
def test_a_problem_follows_the_present_errors(g, space):
    """spec 83 rule T, B.2: the message changes while the threshold runs."""
    make(g, space)
    bucket(g, space + "-1", space)
    buckets_are(g, space, *AVAILABLE)
    breaks(g, space + "-1", "foo")
    first = buckets_are(g, space, "Progressing", "BackupBucketsError")
    breaks(g, space + "-1", "bar")
    second = buckets_are(g, space, "Progressing", "BackupBucketsError", f"The following BackupBuckets have issues:\n* Name: {space}-1, Error: bar")
    assert second["lastTransitionTime"] == first["lastTransitionTime"]


@aggregated
@pytest.mark.dev
def test_broken_buckets_are_named_in_order(g, space):
    """spec 83 B.3, scenario 16: the original's order is random, so that the condition changes with most passes."""
    make(g, space)
    for i in (4, 2, 3, 1, 5):
        bucket(g, f"{space}-{i}", space, f"e{i}")
    message = "The following BackupBuckets have issues:" + "".join(f"\n* Name: {space}-{i}, Error: e{i}" for i in range(1, 6))
    c = buckets_are(g, space, "False", "BackupBucketsError", message)
    consistently(lambda: condition(get(g, space), "BackupBucketsReady") == c, duration=4)


@aggregated
def test_a_seed_that_lost_its_buckets(g, space):
    """spec 83 B.3, D-5, scenario 18."""
    make(g, space)
    bucket(g, space + "-1", space)
    buckets_are(g, space, *AVAILABLE)
    g.delete("BackupBucket", None, space + "-1")
    gone = "BackupBucketsGone", "Backup Buckets are gone."
    buckets_are(g, space, "Progressing", *gone)
    buckets_are(g, space, "Unknown", *gone)


@aggregated
@pytest.mark.dev
def test_a_condition_without_buckets_is_looked_at(g, garden, space):
    """spec 83 B.2, scenario 19: the original forgets such Seeds."""
    garden.plant(seed(space, status={"conditions": [condition_of("BackupBucketsReady")]}))
    buckets_are(g, space, "Unknown", "BackupBucketsGone")


@aggregated
def test_conditions_of_others_stay(g, space):
    """spec 83 section 6, spec 80 §16.2: at their places."""
    make(g, space)
    others = [condition_of("GardenletReady"), condition_of("SeedSystemComponentsHealthy")]
    g.patch("Seed", None, space, {"status": {"conditions": others}}, "status")
    bucket(g, space + "-1", space)
    buckets_are(g, space, *AVAILABLE)
    assert [c for c in get(g, space)["status"]["conditions"] if c["type"] not in ("BackupBucketsReady", "ExtensionsReady")][-1] == others[1]


# --- C: extensions -----------------------------------------------------------------------------------------------------
CI = "ControllerInstallation"
GOOD = {"Valid": "True", "Installed": "True", "Healthy": "True", "Progressing": "False"}


def install(g, on, *names, **states):
    """ControllerInstallations by hand; GCM leaves them alone because nobody registered an extension for the provider type of the Seed (spec 85 A.4 no. 4, DEV-4).
    With states: gardenlet has reported them."""
    for name in names:
        g.create(obj(CI, None, name, spec={"registrationRef": {"name": name}, "seedRef": {"name": on}}))
        if states:
            reports(g, name, **states)


def reports(g, name, messages=None, **states):
    """gardenlet writes these conditions, with the type as message."""
    g.patch(CI, None, name, {"status": {"conditions": [condition_of(t, s, message=(messages or {}).get(t, f"{t}!")) for t, s in states.items()]}}, "status")


def extensions_are(g, name, status, reason, message=None, timeout=10):
    return eventually(lambda: is_condition(g, name, "ExtensionsReady", status, reason, message), f"ExtensionsReady {status} {reason}", timeout=timeout)


ALL_READY = "True", "AllExtensionsReady", "All extensions installed into the seed cluster are ready and healthy."


@aggregated
def test_extensions_that_are_not_installed_yet(g, space):
    """spec 83 C.3, scenario 21: in the order of their names."""
    make(g, space)
    install(g, space, space + "-b", space + "-a")
    extensions_are(g, space, "False", "NotAllExtensionsInstalled",
                   f"Some extensions are not installed: map[{space}-a:extension was not yet installed {space}-b:extension was not yet installed]")


PROBLEMS = {  # what differs from GOOD; reason, word
    "Valid": ("False", "NotAllExtensionsValid", "not valid"), "Installed": ("False", "NotAllExtensionsInstalled", "not installed"),
    "Healthy": ("Unknown", "NotAllExtensionsHealthy", "not healthy"), "Progressing": ("True", "SomeExtensionsProgressing", "progressing"),
}


@aggregated
@pytest.mark.parametrize("type_", PROBLEMS)
def test_what_an_extension_reports(g, space, type_):
    """spec 83 C.2, C.3, rule T, scenario 22."""
    status, reason, word = PROBLEMS[type_]
    make(g, space)
    install(g, space, space + "-a", **GOOD)
    extensions_are(g, space, *ALL_READY)
    reports(g, space + "-a", **{**GOOD, type_: status})
    message = f"Some extensions are {word}: map[{space}-a:{type_}!]"
    extensions_are(g, space, "Progressing", reason, message)
    extensions_are(g, space, "False", reason, message)


@aggregated
def test_the_first_kind_of_problem_decides(g, space):
    """spec 83 C.3, scenario 23."""
    make(g, space)
    install(g, space, space + "-a", **{**GOOD, "Healthy": "False"})
    install(g, space, space + "-b", **{**GOOD, "Valid": "False", "Installed": "False"})
    extensions_are(g, space, "False", "NotAllExtensionsValid", f"Some extensions are not valid: map[{space}-b:Valid!]")
    reports(g, space + "-b", **GOOD)
    extensions_are(g, space, "False", "NotAllExtensionsHealthy", f"Some extensions are not healthy: map[{space}-a:Healthy!]")


@aggregated
def test_all_four_conditions_are_needed(g, space):
    """spec 83 C.3, scenario 24: others do not count."""
    make(g, space)
    install(g, space, space + "-a", Valid="True", Installed="True", Healthy="True", Required="True")
    extensions_are(g, space, "False", "NotAllExtensionsHealthy",
                   f"Some extensions are not healthy: map[{space}-a:not all required conditions found in ControllerInstallation]")


@aggregated
def test_a_seed_without_extensions_is_ready(g, space):
    """spec 83 C.2, C.3, scenario 25: when the last one goes."""
    make(g, space)
    install(g, space, space + "-a")
    extensions_are(g, space, "False", "NotAllExtensionsInstalled")
    g.delete(CI, None, space + "-a")
    extensions_are(g, space, *ALL_READY)


@aggregated
def test_installations_of_shoots_are_not_those_of_seeds(g, space):
    """spec 83 §2.1, C.2, scenario 25."""
    make(g, space)
    g.create(obj(CI, None, space, spec={"registrationRef": {"name": space}, "shootRef": {"name": space, "namespace": "garden"}}))
    consistently(lambda: not condition(get(g, space), "ExtensionsReady"), duration=1)


# --- D: references -----------------------------------------------------------------------------------------------------
def to(kind, name, api=None):
    return {"name": f"{kind}-{name}".lower(), "resourceRef": {"apiVersion": api or ("security.gardener.cloud/v1alpha1" if kind == "WorkloadIdentity" else "v1"), "kind": kind, "name": name}}


def things(g, space, name="x"):
    """A Secret, a ConfigMap and a WorkloadIdentity, with references to them."""
    made = [g.create(make_("garden", f"{space}-{name}")) for make_ in (secret, config_map, workload_identity)]
    return made, [to(o["kind"], o["metadata"]["name"]) for o in made]


def protected(g, *objects, timeout=20):
    for o in objects:
        eventually(lambda: PROTECTION in finalizers(g.get(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"])), f"{o['kind']} is protected", timeout=timeout)


def released(g, *objects, timeout=20):
    for o in objects:
        eventually(lambda: PROTECTION not in finalizers(g.find(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"])), f"{o['kind']} is released", timeout=timeout)


def test_what_a_seed_refers_to_is_protected(g, space):
    """spec 83 D.1, scenarios 27, 28."""
    objects, references = things(g, space)
    s = make(g, space, spec={"resources": references})
    other = make(g, space + "-2")
    protected(g, *objects, s)
    assert PROTECTION not in finalizers(get(g, space + "-2"))

    g.patch("Seed", None, space, {"spec": {"resources": None}})

    released(g, *objects, s)
    assert PROTECTION not in finalizers(get(g, other["metadata"]["name"]))


def test_what_two_seeds_refer_to_is_protected_for_both(g, space):
    """spec 83 D-T2, scenario 28."""
    objects, references = things(g, space)
    both = [make(g, name, spec={"resources": references}) for name in (space, space + "-2")]
    protected(g, *objects, *both)
    g.patch("Seed", None, space, {"spec": {"resources": []}})
    released(g, both[0])
    protected(g, *objects, both[1])
    g.patch("Seed", None, space + "-2", {"spec": {"resources": []}})
    released(g, *objects, both[1])


def test_a_deleting_seed_protects_until_gardenlet_is_done(g, space):
    """spec 83 D-T1, scenario 29."""
    objects, references = things(g, space)
    s = make(g, space, spec={"resources": references}, finalizers=["gardener"])
    protected(g, *objects, s)
    g.delete("Seed", None, space)
    consistently(lambda: all(PROTECTION in finalizers(g.get(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"])) for o in (*objects, s)), duration=1)

    finish(g, "Seed", None, space)

    released(g, *objects)
    eventually(lambda: not g.find("Seed", None, space), "the Seed is gone")


def test_a_reference_that_moves(g, space):
    """spec 83 D.1: the new one is protected, the old one released."""
    old, references = things(g, space)
    s = make(g, space, spec={"resources": references})
    protected(g, *old, s)
    new, references = things(g, space, "y")
    g.patch("Seed", None, space, {"spec": {"resources": references}})
    protected(g, *new, s)
    released(g, *old)


@pytest.mark.dev
def test_a_missing_object_keeps_nothing_else_unprotected(g, space):
    """spec 83 D.1, scenario 31, spec 81 §3.2 G-16: the original ends its pass there."""
    c = g.create(config_map("garden", f"{space}-x"))
    s = make(g, space, spec={"resources": [to("Secret", f"{space}-x"), to("ConfigMap", f"{space}-x")]})
    protected(g, c, s, timeout=5)
    x = g.create(secret("garden", f"{space}-x"))
    protected(g, x)


def test_other_kinds_are_no_references(g, space):
    """spec 83 D.1, scenario 32: names count within their kind only."""
    x, c = g.create(secret("garden", f"{space}-x")), g.create(config_map("garden", f"{space}-x"))
    s = make(g, space, spec={"resources": [to("Deployment", f"{space}-x", "apps/v1"), to("ConfigMap", f"{space}-x", "v2"), to("Secret", f"{space}-x")]})
    protected(g, x, s)
    consistently(lambda: not finalizers(g.get("ConfigMap", "garden", f"{space}-x")), duration=0.5)
    assert c
