use super::*;
use crate::actors::resource_manager::csr_approver::tests::builder::{DNS, IP};
use crate::actors::{
    controller_manager::csr::{
        request::is_undecided,
        requirements::{GARDENADM, SHOOT},
    },
    shared::certificate_request::Unreadable,
};

const NO_TOKEN: &str = "CSR does not seem to be requested via a bootstrap token";
const NO_SHOOT: &str = "bootstrap token does not contain shoot metadata";

fn denied(reason: &str) -> Option<Decision> {
    Some(Decision::Deny(reason.to_owned()))
}

/// spec 81 B.2, B.3, scenarios 9 and 13
#[test]
fn gardenlet_request_that_fulfils_all_requirements_is_approved() {
    assert_eq!(seed().decision(), Some(Decision::Approve));
    assert_eq!(shoot(SHOOT).decision(), Some(Decision::Approve));
    assert_eq!(shoot(GARDENADM).decision(), Some(Decision::Approve));
    let repeated = texts(&["client auth", "client auth", "digital signature", "key encipherment"]);
    assert_eq!(Case { usages: repeated, ..seed() }.decision(), Some(Decision::Approve));
}

/// spec 81 B.3, scenarios 11, 12 and 19
#[test]
fn gardenlet_request_that_fulfils_not_all_requirements_is_left_alone() {
    let named = |kind, name: &[u8]| Case { names: vec![(kind, name.to_vec())], ..seed() };
    let called = |name: &str| Case { common_name: name.to_owned(), ..seed() };
    let of = |organizations: &[&str]| Case { organizations: texts(organizations), ..seed() };
    let for_usages = |usages: &[&str]| Case { usages: texts(usages), ..seed() };
    let shoot_called = |name: &str| Case { common_name: name.to_owned(), ..shoot(SHOOT) };
    for (what, case) in [
        ("another organization", of(&["system:masters"])),
        ("no organization", of(&[])),
        ("two organizations", of(&[SEEDS, "system:masters"])),
        ("its organization twice", of(&[SEEDS, SEEDS])),
        ("the organization of Shoots", of(&[SHOOTS])),
        ("a DNS name", named(DNS, b"a")),
        ("an address", named(IP, &[10, 0, 0, 1])),
        ("an e-mail address", named(EMAIL, b"a@b")),
        ("a URI", named(URI, b"https://a")),
        ("a registered id", named(0x88, &[0x2A])),
        ("too few usages", for_usages(&["digital signature", "client auth"])),
        ("another usage", for_usages(&["key encipherment", "digital signature", "server auth"])),
        ("too many usages", for_usages(&["key encipherment", "digital signature", "client auth", "server auth"])),
        ("only the prefix", called("gardener.cloud:system:seed:")),
        ("another prefix", called("gardener.cloud:system:seeds:x")),
        ("no prefix", called("x")),
        ("another signer", Case { signer: "example.com/foo".to_owned(), ..seed() }),
        ("no signer", Case { signer: String::new(), ..seed() }),
        (
            "a kubelet",
            Case { organizations: texts(&["system:nodes"]), common_name: "system:node:n".to_owned(), ..seed() },
        ),
        ("a Shoot without a name", shoot_called("gardener.cloud:system:shoot:ns:")),
        ("a Shoot without a namespace", shoot_called("gardener.cloud:system:shoot::s")),
        ("a Shoot in one part", shoot_called("gardener.cloud:system:shoot:ns")),
        ("a Shoot in three parts", shoot_called("gardener.cloud:system:shoot:ns:s:t")),
    ] {
        assert_eq!(case.decision(), None, "{what}");
    }
}

/// spec 81 B.3
#[test]
fn gardenlet_request_is_refused_for_the_first_requirement_that_it_does_not_fulfil() {
    let reasons = |case: &Case| format!("{:?}", case.recognized());
    let prefix = "subject's common name does not start with \\\"gardener.cloud:gardenadm:shoot:\\\"";
    let structure =
        "subject's common name must follow this structure: \\\"gardener.cloud:system:shoot:<namespace>:<name>\\\"";
    let case = Case { common_name: "gardener.cloud:system:shoot:x".to_owned(), usages: Vec::new(), ..shoot(SHOOT) };

    let given = reasons(&case);

    assert!(given.contains("subject's organization is not set to [gardener.cloud:system:seeds]"), "{given}");
    assert!(given.contains(prefix) && given.contains(structure), "{given}");
    let usages = reasons(&Case { usages: Vec::new(), ..seed() });
    assert!(usages.contains("key usages are not set to [key encipherment digital signature client auth]"), "{usages}");
    let names = reasons(&Case { names: vec![(URI, b"a:b".to_vec())], usages: Vec::new(), ..seed() });
    assert!(names.contains("DNSNames, EmailAddresses and IPAddresses fields must be empty"), "{names}");
}

/// spec 81 B.2 rule 2
#[test]
fn gardenlet_request_that_is_decided_is_left_alone() {
    for status in [
        json!({ "conditions": [{ "type": "Approved" }] }),
        json!({ "conditions": [{ "type": "Failed" }, { "type": "Denied", "status": "False" }] }),
        json!({ "certificate": "eA==" }),
    ] {
        let case = Case { status, ..seed() };

        assert_eq!(case.read(), None, "{case:?}");
        assert!(!is_undecided(&case.csr()));
    }
    let failed = Case { status: json!({ "conditions": [{ "type": "Failed" }, null, 5] }), ..seed() };
    assert!(failed.read().is_some());
}

/// spec 81 B.2 rule 4, scenario 19
#[test]
fn gardenlet_request_that_cannot_be_read_is_no_request() {
    let mut csr = seed().csr();
    for request in ["", "?", "bm8="] {
        csr["spec"]["request"] = json!(request);

        assert_eq!(GardenletRequest::read(&csr), Err(Unreadable::Block), "{request}");
    }
    csr["spec"]["signerName"] = json!("kubernetes.io/kubelet-serving");
    assert_eq!(GardenletRequest::read(&csr), Ok(None));
    assert_eq!(GardenletRequest::read(&json!({ "spec": [] })), Ok(None));
}

/// spec 81 B.4, scenarios 14 and 15
#[test]
fn gardenlet_request_without_a_bootstrap_token_is_denied_for_a_shoot() {
    for (username, groups) in [
        ("admin", texts(&["system:masters"])),
        ("admin", texts(&["system:bootstrappers"])),
        (TOKEN_USER, texts(&["system:authenticated"])),
        (TOKEN_USER, Vec::new()),
    ] {
        let case = Case { username: username.to_owned(), groups, ..shoot(SHOOT) };

        assert_eq!(case.decision(), denied(NO_TOKEN), "{case:?}");
    }
    let id = |username: &str| {
        token::id_of(&Case { username: username.to_owned(), ..shoot(SHOOT) }.read().unwrap()).map(str::to_owned)
    };
    assert_eq!((id(TOKEN_USER), id("system:bootstrap:")), (Ok("abcdef".to_owned()), Ok(String::new())));
}

/// spec 81 B.4, scenarios 13, 15 and 17
#[test]
fn bootstrap_token_belongs_to_the_shoot_of_its_description() {
    let used = "Used for connecting the self-hosted Shoot";
    let of_gardenlet =
        "A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource";
    let parts = format!("could not extract shoot namespace and name from bootstrap token description: {used}");
    let other = "the common name in the certificate request (gardener.cloud:system:shoot:ns:s) does not match the expected \
                 format 'gardener.cloud:{system,gardenadm}:shoot:<namespace>:<name>'";
    for (description, expected) in [
        (format!("{used} ns/s via x"), Ok(())),
        (format!("{used}  ns/s"), Ok(())),
        (format!("{of_gardenlet} ns/self-hosted-shoot-s."), Ok(())),
        (format!("{of_gardenlet} ns/self-hosted-shoot-s"), Ok(())),
        (format!("{of_gardenlet} ns/s."), Err(NO_SHOOT.to_owned())),
        (format!("x {of_gardenlet} ns/self-hosted-shoot-s."), Err(NO_SHOOT.to_owned())),
        ("seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource ns/s".to_owned(), Err(NO_SHOOT.to_owned())),
        ("foo".to_owned(), Err(NO_SHOOT.to_owned())),
        (String::new(), Err(NO_SHOOT.to_owned())),
        (format!("{used}  "), Err(format!("could not extract shoot meta from bootstrap token description: {used}  "))),
        (format!("{used} nsonly"), Err(format!("{parts} nsonly"))),
        (format!("{used} ns/s/t"), Err(format!("{parts} ns/s/t"))),
        (format!("{used} ns/other"), Err(other.to_owned())),
        (format!("{used} other/s"), Err(other.to_owned())),
    ] {
        assert_eq!(token::check(&description, "gardener.cloud:system:shoot:ns:s"), expected, "{description}");
    }
    let of_garden = format!("{of_gardenlet} garden/myseed.");
    assert_eq!(token::check(&of_garden, "gardener.cloud:system:shoot:garden:myseed"), Err(NO_SHOOT.to_owned()));
}

/// spec 81 B.4: a reason is bounded.
#[test]
fn bootstrap_token_with_a_long_description_gives_a_short_reason() {
    let long = format!("Used for connecting the self-hosted Shoot {}", "ä".repeat(5_000));

    assert!(token::check(&long, "x").unwrap_err().len() < 700);
}

/// spec 81 B.5, scenario 18
#[test]
fn gardenlet_may_ask_for_its_own_certificate_only() {
    let by = |username: &str| Case { username: username.to_owned(), ..seed() };

    assert_eq!(by("gardener.cloud:system:seed:x").decision(), Some(Decision::Approve));
    assert_eq!(by("gardener.cloud:system:seed:a").decision(), None);
    assert_eq!(by("gardener.cloud:system:seed:").decision(), None);
}

/// spec 81 B.5
#[test]
fn review_asks_about_the_requesting_user() {
    let request = shoot(SHOOT).read().unwrap();

    let asked = review(&request, Certificate::Shoot);

    assert_eq!(
        asked["spec"],
        json!({
            "user": TOKEN_USER, "uid": "u", "extra": { "k": ["v"] },
            "groups": ["system:bootstrappers", "system:authenticated"],
            "resourceAttributes": {
                "group": "certificates.k8s.io", "resource": "certificatesigningrequests", "verb": "create",
                "subresource": "shootclient",
            },
        })
    );
    assert_eq!(review(&request, Certificate::Seed)["spec"]["resourceAttributes"]["subresource"], "seedclient");
    for (status, expected) in [
        (json!({ "allowed": true }), true),
        (json!({ "allowed": false }), false),
        (json!({ "allowed": "true" }), false),
        (Value::Null, false),
    ] {
        assert_eq!(is_allowed(&json!({ "status": status })), expected, "{status}");
    }
}

/// spec 81 B.6
#[test]
fn decision_is_one_condition_more() {
    let csr = Case { status: json!({ "conditions": [{ "type": "Failed" }] }), ..seed() }.csr();

    let approved = decided(csr.clone(), &Decision::Approve);
    let denial = decided(seed().csr(), &Decision::Deny("r".to_owned()));

    assert_eq!(approved["spec"], csr["spec"]);
    assert_eq!(
        approved["status"]["conditions"],
        json!([{ "type": "Failed" }, { "type": "Approved", "status": "True", "reason": "AutoApproved",
            "message": "Auto approving gardenlet client certificate after SubjectAccessReview." }])
    );
    assert_eq!(
        denial["status"]["conditions"],
        json!([{ "type": "Denied", "status": "True", "reason": "RequestDenied",
            "message": "Denying gardenlet client certificate (Bootstrap token does not fulfill requirements for \
                auto-approval: r)" }])
    );
}
