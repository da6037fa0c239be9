use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
};

use cluster::object::NamespacedName;
use serde_json::{Value, json};

use super::{
    binding::{Binding, BindingKind, BindingName},
    credentials::{
        CredentialsKind, CredentialsRef, CredentialsState, LEGACY, LabelChange, protect, provider_label, release,
    },
    release::{Answer, BindingsOfKind as _, Judge, ListedBindings, Question, Release, UsedBindings},
};

const OF_SECRET: BindingKind = BindingKind::SecretBinding;
const OF_CREDENTIALS: BindingKind = BindingKind::CredentialsBinding;
const OWN: &str = "gardener.cloud/secretbinding";
const OTHER: &str = "gardener.cloud/credentialsbinding";

fn name(text: &str) -> NamespacedName {
    let (namespace, name) = text.split_once('/').unwrap();
    NamespacedName::new(namespace, name)
}

fn secret(text: &str) -> CredentialsRef {
    CredentialsRef { kind: CredentialsKind::Secret, name: name(text) }
}

fn types(types: &[&str]) -> BTreeSet<String> {
    types.iter().map(|name| (*name).to_owned()).collect()
}

fn read(kind: BindingKind, fields: Value) -> Binding {
    let mut binding = fields;
    binding["metadata"] = json!({ "namespace": "ns", "name": "b", "finalizers": ["gardener"] });
    Binding::of(kind, &binding)
}

/// spec 81 G.1, scenarios 57 and 67
#[test]
fn secret_binding_has_credentials_types_and_quotas() {
    let fields = json!({ "secretRef": { "name": "s" }, "provider": { "type": "aws, gcp,," },
        "quotas": [{ "name": "q" }, { "namespace": "x", "name": "q" }, {}] });

    let binding = read(OF_SECRET, fields);

    assert_eq!(binding.credentials, Ok(secret("ns/s")));
    assert_eq!(binding.types, types(&["aws", "gcp"]));
    assert_eq!(binding.quotas, BTreeSet::from([name("ns/q"), name("x/q")]));
    assert!(binding.is_held && !binding.is_deleting && binding.exists());
    let elsewhere = read(OF_SECRET, json!({ "secretRef": { "namespace": "x", "name": "s" } }));
    assert_eq!((elsewhere.credentials, elsewhere.types), (Ok(secret("x/s")), types(&[])));
    for odd in [json!({}), json!({ "secretRef": 5, "provider": [], "quotas": {} })] {
        assert!(!read(OF_SECRET, odd).credentials.unwrap().can_exist());
    }
    for (reference, expected) in
        [("ns/s", true), ("ns/s.x", true), ("ns/x/y", false), ("../s", false), ("n.s/s", false)]
    {
        assert_eq!(secret(reference).can_exist(), expected, "{reference}");
    }
}

/// spec 81 G.1, scenarios 58 and 69
#[test]
fn credentials_binding_refers_to_three_kinds() {
    let of = |version: &str, kind: &str| {
        let reference = json!({ "apiVersion": version, "kind": kind, "name": "s" });
        read(OF_CREDENTIALS, json!({ "credentialsRef": reference, "provider": { "type": "a,b" } }))
    };
    for (version, kind, expected) in [
        ("v1", "Secret", CredentialsKind::Secret),
        ("core.gardener.cloud/v1beta1", "InternalSecret", CredentialsKind::InternalSecret),
        ("security.gardener.cloud/v1alpha1", "WorkloadIdentity", CredentialsKind::WorkloadIdentity),
    ] {
        assert_eq!(of(version, kind).credentials, Ok(CredentialsRef { kind: expected, name: name("ns/s") }));
    }
    assert_eq!(of("v1", "Secret").types, types(&["a,b"]), "it has one type");
    for (version, kind, text) in [
        ("v1", "ConfigMap", "v1, Kind=ConfigMap"),
        ("security.gardener.cloud/v1", "WorkloadIdentity", "security.gardener.cloud/v1, Kind=WorkloadIdentity"),
    ] {
        let expected = format!("unsupported credentials reference: ns/s, {text}");
        assert_eq!(of(version, kind).credentials, Err(expected));
    }
}

fn with_finalizers(finalizers: &[&str], is_deleting: bool) -> Value {
    let deleted = is_deleting.then_some("2026-08-21T12:00:00Z");
    json!({ "metadata": { "finalizers": finalizers, "deletionTimestamp": deleted } })
}

fn finalizers(patch: Option<Value>) -> Option<Value> {
    patch.map(|patch| patch["metadata"]["finalizers"].clone())
}

/// spec 81 G.2 steps 3 and 4, G.4, scenario 64
#[test]
fn credentials_get_the_finalizer_in_the_patch_that_removes_that_of_earlier_releases() {
    for (before, is_deleting, expected) in [
        (&[][..], false, Some(json!([OWN]))),
        (&["x", LEGACY, OTHER], false, Some(json!(["x", OTHER, OWN]))),
        (&[LEGACY, OWN], false, Some(json!([OWN]))),
        (&[LEGACY, OWN], true, Some(json!([OWN]))),
        (&[OWN, "x"], false, None),
        (&[LEGACY], true, None),
        (&[], true, None),
    ] {
        let patch = protect(&with_finalizers(before, is_deleting), OF_SECRET);

        assert_eq!(finalizers(patch), expected, "{before:?} {is_deleting}");
    }
}

/// spec 81 G.3 step 4, trap G-T1
#[test]
fn credentials_lose_only_the_finalizers_of_their_kind_of_binding() {
    for (before, other_is_used, expected) in [
        (&[OWN][..], true, Some(Value::Null)),
        (&["x", OWN, OTHER, LEGACY], true, Some(json!(["x", OTHER]))),
        (&["x", OWN, LEGACY], true, Some(json!(["x", LEGACY]))),
        (&["x", OWN, LEGACY], false, Some(json!(["x"]))),
        (&[LEGACY], true, None),
        (&["x", OTHER], true, None),
        (&[], true, None),
    ] {
        let patch = release(&with_finalizers(before, false), OF_SECRET, other_is_used);

        assert_eq!(finalizers(patch), expected, "{before:?} {other_is_used}");
    }
}

/// spec 81 G.2 steps 5 and 6, scenarios 57, 59 and 68
#[test]
fn labels_are_added_if_they_are_missing_and_removed_alone() {
    let secret = json!({ "metadata": { "labels": { "a": "b", "provider.shoot.gardener.cloud/aws": "false" } } });
    let add = BTreeSet::from([provider_label("aws"), provider_label("gcp")]);
    let remove = BTreeSet::from([provider_label("aws"), OF_SECRET.label().to_owned()]);
    let state = CredentialsState::of(&secret);

    let added = LabelChange { add, ..LabelChange::default() };
    let removed = LabelChange { remove, ..LabelChange::default() };

    let labels = |labels: Value| Some(json!({ "metadata": { "labels": labels } }));
    assert_eq!(added.patch(&state), labels(json!({ "provider.shoot.gardener.cloud/gcp": "true" })));
    assert_eq!(removed.patch(&state), labels(json!({ "provider.shoot.gardener.cloud/aws": null })));
    assert_eq!(removed.patch(&CredentialsState::of(&json!({}))), None);
    assert!(!added.is_done(&state) && !removed.is_done(&state) && removed.is_done(&CredentialsState::of(&json!({}))));
}

/// spec 81 G-T7
#[test]
fn credentials_are_known_by_their_marks() {
    let state = CredentialsState::of(&json!({ "metadata": {
        "finalizers": [OWN, LEGACY, "x"],
        "labels": { "provider.shoot.gardener.cloud/aws": "true", "provider.shoot.gardener.cloud/gcp": "x", OF_CREDENTIALS.label(): "true" },
    } }));

    let expected = CredentialsState {
        held_by: BTreeSet::from([OF_SECRET]),
        has_legacy: true,
        labelled_by: BTreeSet::from([OF_CREDENTIALS]),
        types: BTreeMap::from([("aws".to_owned(), true), ("gcp".to_owned(), false)]),
        is_deleting: false,
        deleted: None,
    };
    assert_eq!(state, expected);
    assert!(state.is_marked_by(OF_SECRET) && state.is_marked_by(OF_CREDENTIALS) && !state.is_lost_for(OF_SECRET));
}

/// spec 81 G.1: what wakes the bindings of credentials.
#[test]
fn credentials_lose_a_mark_with_a_finalizer_or_a_label() {
    let aws = provider_label("aws");
    let aws = aws.as_str();
    let state = |finalizers: &[&str], labels: &[&str]| {
        let labels: BTreeMap<_, _> = labels.iter().map(|label| (*label, "true")).collect();
        CredentialsState::of(&json!({ "metadata": { "finalizers": finalizers, "labels": labels } }))
    };
    let marked = state(&[OWN, OTHER, LEGACY], &[OF_SECRET.label(), OF_CREDENTIALS.label(), aws]);
    for (newer, of_secret, of_credentials) in [
        (marked.clone(), false, false),
        (state(&[OWN, OTHER], &[OF_SECRET.label(), OF_CREDENTIALS.label(), aws, "x"]), false, false),
        (state(&[OTHER], &[OF_SECRET.label(), OF_CREDENTIALS.label(), aws]), true, false),
        (state(&[OWN, OTHER], &[OF_SECRET.label(), aws]), false, true),
        (state(&[OWN, OTHER], &[OF_SECRET.label(), OF_CREDENTIALS.label()]), true, true),
    ] {
        assert_eq!(marked.loses_mark(&newer, OF_SECRET), of_secret, "{newer:?}");
        assert_eq!(marked.loses_mark(&newer, OF_CREDENTIALS), of_credentials, "{newer:?}");
        assert!(!newer.loses_mark(&marked, OF_SECRET));
    }
}

/// Bindings by kind and name, and those in use.
#[derive(Default)]
struct Facts {
    bindings: Vec<(BindingName, Binding)>,
    used: BTreeSet<BindingName>,
}

impl Facts {
    fn with(mut self, kind: BindingKind, text: &str, binding: Binding) -> Self {
        self.bindings.push(((kind, name(text)), binding));
        self
    }

    fn used(mut self, kind: BindingKind, text: &str) -> Self {
        self.used.insert((kind, name(text)));
        self
    }

    fn answer(&self, question: Question) -> Result<Answer, ()> {
        Ok(match question {
            Question::Bindings(kind) => {
                let mut listed = ListedBindings::default();
                let of_kind = self.bindings.iter().filter(|((other, _), _)| *other == kind);
                of_kind.for_each(|((_, name), binding)| listed.add(name, &Arc::new(binding.clone())));
                Answer::Bindings(Rc::new(listed))
            }
            Question::InUse => Answer::InUse(UsedBindings::Listed(Rc::new(self.used.clone()))),
        })
    }

    fn release(&self, judge: Judge, text: &str) -> Release {
        let name = name(text);
        let itself = self.bindings.iter().find(|((kind, other), _)| *kind == judge.kind && *other == name);
        judge.binding(&name, &itself.unwrap().1, |question| self.answer(question)).unwrap()
    }
}

const JUDGE: Judge = Judge { kind: OF_SECRET, labels_workload_identities: true };

fn alive(text: &str) -> Binding {
    Binding {
        credentials: Ok(secret("ns/s")),
        types: types(&[text]),
        quotas: BTreeSet::from([name("ns/q")]),
        is_deleting: false,
        is_held: true,
    }
}

fn deleting(text: &str) -> Binding {
    Binding { is_deleting: true, ..alive(text) }
}

fn released(names: &[&str]) -> Option<BTreeSet<String>> {
    Some(types(names))
}

/// spec 81 G.3, G.5, scenarios 59, 60, 62 and 63
#[test]
fn credentials_are_released_when_no_other_binding_of_the_kind_counts() {
    let facts = || Facts::default().with(OF_SECRET, "a/one", deleting("aws"));
    let release_with = |facts: Facts| facts.release(JUDGE, "a/one").types;

    assert_eq!(release_with(facts()), released(&["aws"]));
    assert_eq!(release_with(facts().with(OF_SECRET, "b/one", alive("aws"))), None);
    assert_eq!(release_with(facts().with(OF_SECRET, "b/two", deleting("aws"))), released(&["aws"]));
    assert_eq!(release_with(facts().with(OF_SECRET, "b/two", deleting("aws")).used(OF_SECRET, "b/two")), None);
    let free = Binding { is_held: false, ..deleting("aws") };
    assert_eq!(release_with(facts().with(OF_SECRET, "b/two", free).used(OF_SECRET, "b/two")), released(&["aws"]));
    let of_others = Binding { credentials: Ok(secret("ns/other")), ..alive("aws") };
    assert_eq!(release_with(facts().with(OF_SECRET, "b/two", of_others)), released(&["aws"]));
}

/// spec 81 G.6, scenario 61
#[test]
fn provider_labels_stay_while_a_binding_of_the_other_kind_needs_them() {
    let both = Binding { types: types(&["aws", "gcp"]), ..deleting("") };
    let facts = || Facts::default().with(OF_SECRET, "a/one", both.clone());
    let release_with = |facts: Facts| facts.release(JUDGE, "a/one").types;

    assert_eq!(release_with(facts().with(OF_CREDENTIALS, "a/one", alive("aws"))), released(&["gcp"]));
    assert_eq!(release_with(facts().with(OF_CREDENTIALS, "a/one", deleting("aws"))), released(&["aws", "gcp"]));
    let used = facts().with(OF_CREDENTIALS, "a/two", deleting("aws")).used(OF_CREDENTIALS, "a/two");
    assert_eq!(release_with(used), released(&["gcp"]));
}

/// spec 81 G.4, traps G-T1 and G-T2
#[test]
fn finalizer_of_earlier_releases_is_needed_while_a_binding_of_the_other_kind_counts() {
    let facts = || Facts::default().with(OF_SECRET, "a/one", deleting("aws"));
    let is_needed = |facts: Facts| {
        let left = JUDGE.left_credentials(&secret("ns/s"), &types(&[]), |question| facts.answer(question)).unwrap();
        (facts.release(JUDGE, "a/one").other_is_used, left.other_is_used)
    };

    assert_eq!(is_needed(facts()), (false, false));
    let gone = || Facts::default().with(OF_SECRET, "a/one", Binding { is_held: false, ..deleting("aws") });
    assert_eq!(is_needed(gone().with(OF_CREDENTIALS, "a/one", alive("aws"))), (true, true));
    assert_eq!(is_needed(gone().with(OF_CREDENTIALS, "a/two", deleting("aws"))), (false, false));
    let used = gone().with(OF_CREDENTIALS, "a/two", deleting("aws")).used(OF_CREDENTIALS, "a/two");
    assert_eq!(is_needed(used), (true, true));
}

/// spec 81 D-3, G.6
#[test]
fn workload_identities_need_no_provider_label_if_they_get_none() {
    let identity = CredentialsRef { kind: CredentialsKind::WorkloadIdentity, name: name("ns/s") };
    let of = |binding: Binding| Binding { credentials: Ok(identity.clone()), ..binding };
    let facts =
        Facts::default().with(OF_CREDENTIALS, "a/one", of(deleting("aws"))).with(OF_SECRET, "a/two", of(alive("aws")));
    let judge = |labels_workload_identities| Judge { kind: OF_CREDENTIALS, labels_workload_identities };

    assert_eq!(facts.release(judge(true), "a/one").types, released(&[]));
    assert_eq!(facts.release(judge(false), "a/one").types, released(&["aws"]));
}

/// spec 81 G.3 step 5, scenarios 59 and 60
#[test]
fn quota_is_released_when_no_other_binding_of_the_kind_refers_to_it() {
    let facts = || Facts::default().with(OF_SECRET, "a/one", deleting("aws"));
    let release_with = |facts: Facts| facts.release(JUDGE, "a/one").quotas;

    assert_eq!(release_with(facts()), BTreeSet::from([name("ns/q")]));
    assert_eq!(release_with(facts().with(OF_CREDENTIALS, "a/two", alive("aws"))), BTreeSet::from([name("ns/q")]));
    assert_eq!(release_with(facts().with(OF_SECRET, "b/two", alive("aws"))), BTreeSet::new());
    assert_eq!(release_with(facts().with(OF_SECRET, "b/two", deleting("aws"))), BTreeSet::new());
}

/// spec 81 G.3 step 5: a binding may have thousands of Quotas.
#[test]
fn listed_binding_is_shared_by_all_its_quotas() {
    let quotas = (0..1000).map(|number| name(&format!("ns/q{number}"))).collect();
    let binding = Arc::new(Binding { quotas, ..alive("aws") });
    let mut listed = ListedBindings::default();

    listed.add(&name("a/one"), &binding);

    assert_eq!(Arc::strong_count(&binding), 1 + 1 + 1000, "by the test, its credentials and its Quotas");
    assert_eq!(listed.with_credentials(&secret("ns/s")), [(name("a/one"), binding)]);
    assert!(listed.any_with_quota(&name("ns/q999"), &|other, _| *other == name("a/one")));
    assert!(!listed.any_with_quota(&name("ns/q1000"), &|_, _| true));
}

/// spec 81 G.1, scenario 69
#[test]
fn binding_with_unsupported_credentials_releases_only_quotas() {
    let odd = Binding { credentials: Err("unsupported".to_owned()), ..deleting("aws") };

    let release = Facts::default().with(OF_SECRET, "a/one", odd).release(JUDGE, "a/one");

    assert_eq!(release, Release { quotas: BTreeSet::from([name("ns/q")]), ..Release::default() });
}

/// spec 81 G-T6
#[test]
fn what_a_binding_left_is_released_when_no_binding_of_the_kind_exists() {
    let left = |facts: &Facts| {
        let ask = |question| facts.answer(question);
        let credentials = JUDGE.left_credentials(&secret("ns/s"), &types(&["aws", "gcp"]), ask).unwrap();
        let quota = JUDGE.left_quota(&name("ns/q"), |question| facts.answer(question)).unwrap();
        (credentials.types, !quota.quotas.is_empty())
    };
    let free = Binding { is_held: false, ..deleting("aws") };

    assert_eq!(left(&Facts::default()), (released(&["aws", "gcp"]), true));
    assert_eq!(left(&Facts::default().with(OF_CREDENTIALS, "a/b", alive("aws"))), (released(&["gcp"]), true));
    assert_eq!(left(&Facts::default().with(OF_SECRET, "a/b", free)), (released(&["aws", "gcp"]), true));
    assert_eq!(left(&Facts::default().with(OF_SECRET, "a/b", deleting("aws"))), (None, false));
    assert_eq!(left(&Facts::default().with(OF_SECRET, "a/b", alive("aws"))), (None, false));
}

/// spec 80 S-13: what the caches lack is asked for before a release.
#[test]
fn release_needs_an_answer_to_each_question() {
    let asked = JUDGE.binding(&name("a/one"), &deleting("aws"), Err::<Answer, _>);

    assert_eq!(asked, Err(Question::Bindings(OF_SECRET)));
}
