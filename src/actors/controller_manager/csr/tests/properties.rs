//! One deviation from an approved request prevents the approval, and nothing panics.

use proptest::{collection, prelude::*, sample::select};

use super::*;
use crate::actors::controller_manager::csr::requirements::{GARDENADM, SHOOT};
use crate::actors::resource_manager::csr_approver::tests::builder::{DNS, IP};

type Change = (&'static str, fn(&mut Case, &str));

/// Changes that matter for each request. Each gets a text of letters.
const OF_ALL: [Change; 15] = [
    ("signer", |case, text| case.signer.push_str(text)),
    ("organization", |case, text| case.organizations[0].push_str(text)),
    ("another organization", |case, text| case.organizations.push(text.to_owned())),
    ("another organization first", |case, text| case.organizations.insert(0, text.to_owned())),
    ("its organization again", |case, _| case.organizations.push(case.organizations[0].clone())),
    ("no organization", |case, _| case.organizations.clear()),
    ("prefix", |case, text| case.common_name.insert_str(0, text)),
    ("DNS name", |case, text| case.names.push((DNS, text.into()))),
    ("address", |case, _| case.names.push((IP, vec![10, 0, 0, 1]))),
    ("e-mail address", |case, text| case.names.push((EMAIL, text.into()))),
    ("URI", |case, text| case.names.push((URI, text.into()))),
    ("usage more", |case, text| case.usages.push(text.to_owned())),
    ("usage less", |case, _| drop(case.usages.pop())),
    ("other usage", |case, text| case.usages[0].push_str(text)),
    ("decision", |case, _| case.status = json!({ "conditions": [{ "type": "Denied", "status": "True" }] })),
];

/// Changes that matter for the request of a Shoot.
const OF_SHOOT: [Change; 7] = [
    ("name", |case, text| case.common_name.push_str(text)),
    ("third part", |case, text| case.common_name.push_str(&format!(":{text}"))),
    ("user", |case, text| case.username.insert_str(0, text)),
    ("groups", |case, _| case.groups.clear()),
    ("description", |case, text| case.description.insert_str(0, text)),
    ("no description", |case, _| case.description.clear()),
    ("other Shoot", |case, text| case.description = case.description.replace("/", &format!("{text}/"))),
];

/// Changes that matter for the request of a Seed's gardenlet that renews its certificate.
const OF_RENEWAL: [Change; 2] =
    [("name", |case, text| case.common_name.push_str(text)), ("user", |case, text| case.username.push_str(text))];

fn name() -> impl Strategy<Value = String> {
    "[a-z]([a-z0-9-]{0,20}[a-z0-9])?"
}

fn of_seed() -> impl Strategy<Value = Case> {
    name().prop_map(|name| Case { common_name: format!("gardener.cloud:system:seed:{name}"), ..seed() })
}

fn of_shoot() -> impl Strategy<Value = Case> {
    (name(), name(), select(vec![SHOOT, GARDENADM]), any::<bool>()).prop_map(
        |(namespace, name, prefix, is_gardenlet)| {
            let description = match is_gardenlet {
                false => format!("Used for connecting the self-hosted Shoot {namespace}/{name} via x"),
                true => format!(
                    "A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource \
                 {namespace}/self-hosted-shoot-{name}."
                ),
            };
            Case { common_name: format!("{prefix}{namespace}:{name}"), description, ..shoot(prefix) }
        },
    )
}

fn changed(case: &Case, change: &Change, text: &str) -> Case {
    let mut changed = case.clone();
    (change.1)(&mut changed, text);
    changed
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// spec 81 B.3, B.4
    #[test]
    fn gardenlet_request_that_differs_in_one_field_is_never_approved(
        seed in of_seed(), shoot in of_shoot(), text in "[a-z]{1,8}",
    ) {
        let renewal = Case { username: seed.common_name.clone(), ..seed.clone() };
        for case in [&seed, &shoot, &renewal] {
            prop_assert_eq!(case.decision(), Some(Decision::Approve), "{:?}", case);
            for change in &OF_ALL {
                let changed = changed(case, change, &text);
                prop_assert_ne!(changed.decision(), Some(Decision::Approve), "{}: {:?}", change.0, changed);
            }
        }
        for (case, changes) in [(&shoot, &OF_SHOOT[..]), (&renewal, &OF_RENEWAL[..])] {
            for change in changes {
                let changed = changed(case, change, &text);
                prop_assert_ne!(changed.decision(), Some(Decision::Approve), "{}: {:?}", change.0, changed);
            }
        }
    }

    /// spec 81 B.4, trap B-T1
    #[test]
    fn gardenlet_request_of_any_shape_is_approved_only_if_it_is_recognized(
        organizations in collection::vec(select(vec![SEEDS, SHOOTS, "system:nodes", ""]), 0..3),
        common_name in "(gardener.cloud:system:(seed|shoot):)?[a-z:/]{0,8}", username in "(system:bootstrap:)?[a-z]{0,4}",
        description in "(Used for connecting the self-hosted Shoot )?[a-z/ ]{0,8}",
    ) {
        let case = Case { organizations: texts(&organizations), common_name, username, description, ..seed() };

        if let Some(Decision::Deny(_)) = case.decision() {
            prop_assert_eq!(organizations, [SHOOTS], "only requests for Shoots may be denied");
        }
    }
}
