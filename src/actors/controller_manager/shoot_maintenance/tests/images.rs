//! Machine images (spec 84 C.7).

use super::*;

fn reason(kind: &str, strategy: &str) -> String {
    match kind {
        "auto" => {
            format!("Automatic update of the machine image version is configured (image update strategy: {strategy})")
        }
        "expired" => {
            format!("Machine image version expired - force update required (image update strategy: {strategy})")
        }
        _ => ABSENT.to_owned(),
    }
}

fn updated(pool: &str, old: &str, new: &str, reason: &str) -> String {
    format!("Worker pool \"{pool}\": Updated machine image \"os\" from \"{old}\" to \"{new}\". Reason: {reason}")
}

fn of_images(current: &str, is_automatic: bool) -> Value {
    shoot("1.30.1", json!([pool("w", current, json!({}))]), automatic(false, is_automatic))
}

fn images(text: &str) -> Value {
    entries(text).into()
}

/// spec 84 C.7, scenarios 55 to 58, 68 and 69
#[test]
fn image_is_updated_by_its_strategy() {
    for (strategy, current, versions, expected) in [
        ("major", "1.0.0", "1.0.0, 1.5.3", Some(("1.5.3", "auto"))),
        ("major", "1.0.0", "1.0.0, 1.5.3, 1.0.2", Some(("1.0.2", "auto"))),
        ("patch", "1.0.0", "1.0.0, 1.2.5", None),
        ("patch", "1.0.0", "1.0.0 expired, 1.2.5", Some(("1.2.5", "expired"))),
        ("patch", "1.0.0", "1.0.0 expired, 1.2.5, 1.2.4, 1.3.1, 2.1.0", Some(("1.2.5", "expired"))),
        ("patch", "1.0.0", "1.0.0 expired, 1.2.4 preview, 1.4.1", Some(("1.4.1", "expired"))),
        ("patch", "1.0.0", "1.0.0 expired, 1.2.4 expired, 1.2.5 preview", Some(("1.2.4", "expired"))),
        ("minor", "1.0.0", "1.0.0, 1.0.6, 1.5.1, 3.2.5", Some(("1.0.6", "auto"))),
        ("minor", "1.0.0", "1.0.0, 1.5.1, 3.2.5", Some(("1.5.1", "auto"))),
        ("minor", "1.5.1", "1.0.6, 1.5.1 expired, 3.2.5", Some(("3.2.5", "expired"))),
        ("minor", "1.5.1", "1.5.1 expired, 2.1.1 preview, 3.2.5", Some(("3.2.5", "expired"))),
        ("major", "1", "1, 2", Some(("2", "auto"))),
        ("patch", "1.7", "1.7, 1.8", None),
        ("patch", "1.0.0", "1.1.0 preview, 1.2.0, 1.2.1 expired, 1.0.0 expired", Some(("1.2.0", "expired"))),
        ("major", "1.0.1", "1.0.0, 1.0.2", Some(("1.0.2", "absent"))),
    ] {
        let plan = maintained(&of_images(current, true), &profile("1.30.1", images(versions), strategy));
        match expected {
            Some((new, kind)) => {
                let text = updated("w", current, new, &reason(kind, strategy));
                assert_eq!((images_of(&plan), description(&plan)), (vec![new], format!("{GOOD}{text}")), "{versions}");
                assert_eq!(
                    plan.results.events().into_iter().map(|event| event.note).collect::<Vec<_>>(),
                    [format!("{text}.")]
                );
            }
            None => assert_eq!((images_of(&plan), plan.results.is_changed()), (vec![current], false), "{versions}"),
        }
    }
}

/// spec 84 C-13, X3, X4, scenario 59
#[test]
fn image_at_its_end_of_life_fails() {
    let plan = maintained(&of_images("1.0.0", true), &profile("1.30.1", images("1.0.0 expired"), "major"));

    let texts = plan.results.texts();
    let why = reason("expired", "major");
    assert_eq!(images_of(&plan), ["1.0.0"]);
    assert_eq!(
        texts.description,
        format!(
            "(0/1) maintenance operations successful. Worker pool \"w\": machine image version maintenance failed. Reason for update: {why}"
        )
    );
    let start = "Worker pool \"w\": failed to update machine image \"os\": failed to determine the target version for maintenance \
        of machine image \"os\" with strategy \"major\": failed to determine version for forceful update: either the machine image";
    assert!(texts.failure_reason.starts_with(start), "{}", texts.failure_reason);
    let events = plan.results.events();
    assert!(events[0].note.starts_with(&format!(
        "Worker pool \"w\": Machine image version maintenance failed. Reason for update: {why}. Error: failed to update"
    )));
}

/// spec 84 C.13, scenario 60
#[test]
fn one_pool_fails_and_another_is_updated() {
    let pools = json!([pool("a", "1.0.0", json!({ "cri": { "name": "other" } })), pool("b", "0.9.9", json!({}))]);
    let plan = maintained(
        &shoot("1.30.1", pools, automatic(false, true)),
        &profile("1.30.1", images("1.0.0, 1.0.2 expired"), "major"),
    );

    let texts = plan.results.texts();
    assert_eq!(images_of(&plan), ["1.0.0", "1.0.0"]);
    assert!(texts.description.starts_with("(1/2) maintenance operations successful. Worker pool \"a\": machine image"));
    assert!(texts.description.ends_with(&updated("b", "0.9.9", "1.0.0", ABSENT)), "{}", texts.description);
    assert!(texts.failure_reason.starts_with("Worker pool \"a\": failed to update machine image \"os\": "));
}

/// spec 84 C.7 F1 and F3, scenarios 61 and 62
#[test]
fn image_that_does_not_fit_is_no_target() {
    let arm = json!({ "machine": { "architecture": "arm64" } });
    let gvisor = json!({ "cri": { "name": "containerd", "containerRuntimes": [{ "type": "gvisor" }] } });
    let both = json!({ "version": "1.0.0", "architectures": ["amd64", "arm64"], "cri": [gvisor["cri"]] });
    for (more, versions, expected) in [
        (arm, json!([both, { "version": "1.1.2", "architectures": ["arm64"] }, { "version": "1.7.1" }]), "1.1.2"),
        (json!({}), json!([both, { "version": "1.1.2", "cri": [{ "name": "other" }] }]), "1.0.0"),
        (gvisor.clone(), json!([both, { "version": "1.1.2" }]), "1.0.0"),
        (gvisor, json!([both, { "version": "1.1.2" }, { "version": "1.1.1", "cri": both["cri"] }]), "1.1.1"),
    ] {
        let shoot = shoot("1.30.1", json!([pool("w", "1.0.0", more.clone())]), automatic(false, true));
        assert_eq!(images_of(&maintained(&shoot, &profile("1.30.1", versions, "major"))), [expected], "{more}");
    }
}

/// spec 84 C.7 F4, C-T1, scenarios 63 and 64
#[test]
fn image_is_chosen_for_the_kubelet_before_the_maintenance() {
    let constrained = |constraint: &str| json!([{ "version": "1.0.0" }, { "version": "1.1.0", "kubeletVersionConstraint": constraint }]);
    let own = json!({ "kubernetes": { "version": "1.26.0" } });
    for (version, more, constraint, expected) in [
        ("1.26.0", json!({}), "< 1.26", "1.0.0"),
        ("1.27.0", own.clone(), ">= 1.26", "1.1.0"),
        ("1.27.0", own, ">= 1.27", "1.0.0"),
        ("1.26.0", json!({}), ">= 1.26", "1.1.0"),
    ] {
        let shoot = shoot(version, json!([pool("w", "1.0.0", more)]), automatic(true, true));
        let plan = maintained(&shoot, &profile("1.26.0, 1.26.1, 1.27.0", constrained(constraint), "major"));
        assert_eq!(images_of(&plan), [expected], "{version} {constraint}");
    }

    let versions = json!([{ "version": "1.0.0", "kubeletVersionConstraint": "< 1.30" }, { "version": "1.1.0" }]);
    let plan = maintained(&of_images("1.0.0", false), &profile("1.30.1", versions, "minor"));
    assert_eq!(
        (images_of(&plan), description(&plan)),
        (vec!["1.1.0"], format!("{GOOD}{}", updated("w", "1.0.0", "1.1.0", ABSENT)))
    );
}

/// spec 84 C-10, C.7.1
#[test]
fn image_version_that_cannot_be_read_is_told() {
    let constrained =
        |version: &str, constraint: &str| json!({ "version": version, "kubeletVersionConstraint": constraint });
    let versions = json!([constrained("1.0.0", ""), constrained("1.1.0", "odd"), constrained("1.2.0", ">> 1"), { "version": "x" }]);
    let os = json!({ "machine": { "image": { "name": "OS" } } });
    let pools = json!([pool("a", "1.0.0", json!({})), pool("b", "1.0.0", os)]);
    let plan = maintained(&shoot("1.30.1", pools, automatic(false, true)), &profile("1.30.1", versions, "major"));

    let warnings = plan.remarks.iter().filter(|remark| remark.level == RemarkLevel::Warning);
    let warnings: Vec<_> = warnings.map(|remark| (remark.message, &*remark.about, &*remark.detail)).collect();
    let expected = [
        ("Skipping versions of the CloudProfile that are no semantic versions", "1", "x"),
        ("Skipping versions of machine images whose kubeletVersionConstraint cannot be read", "2", "1.1.0"),
    ];
    assert_eq!(warnings, expected);
}

/// spec 84 C-14 to C-16, scenario 67
#[test]
fn pool_that_the_profile_does_not_know_is_left_alone() {
    let machine = |field: &str, value: Value| json!({ "machine": { field: value } });
    let pools = json!([
        pool("a", "1.0.0", json!({})),
        pool("b", "1.0.0", machine("type", json!("none"))),
        pool("c", "1.0.0", machine("image", json!({ "name": "no" }))),
        pool("d", "1.0.0", machine("image", json!({ "name": "OS" }))),
        { "name": "e", "machine": { "type": "m", "image": { "name": "os", "version": "" } } },
    ]);
    let plan = maintained(
        &shoot("1.30.1", pools, automatic(false, true)),
        &profile("1.30.1", images("1.0.0, 1.1.0"), "major"),
    );

    assert_eq!(images_of(&plan), ["1.1.0", "1.0.0", "1.0.0", "1.1.0", ""]);
    let auto = updated("a", "1.0.0", "1.1.0", &reason("auto", "major"));
    assert_eq!(description(&plan), format!("{GOOD}{auto}, {}", updated("d", "1.0.0", "1.1.0", ABSENT)));
    assert_eq!(
        errors(&plan),
        [
            "machine type \"none\" of worker \"b\" does not exist in cloudprofile",
            "failure while determining the default machine image in the CloudProfile: no machineImage with name \"no\" (specified in shoot) could be found in the cloudProfile \"cp\"",
        ]
    );
}

/// spec 84 "better" 7
#[test]
fn images_that_the_api_server_refuses_are_reported_as_failed() {
    let shoot = shoot("1.30.1", json!([pool("w", "1.0.0", json!({}))]), automatic(true, true));
    let profile = profile("1.30.1, 1.30.5", images("1.0.0, 1.1.0"), "major");
    assert!(maintained(&shoot, &profile).results.changes_both_kinds());

    let plan = maintained_with(&shoot, &profile, SETTINGS, None, Some("it does not fit"));

    assert_eq!((version_of(&plan), images_of(&plan)), ("1.30.5", vec!["1.0.0"]));
    assert_eq!(
        plan.results.texts().failure_reason,
        "Worker pool \"w\": failed to update machine image \"os\": it does not fit"
    );
    assert!(!plan.results.changes_both_kinds());
}

/// An API server that answers with megabytes must not multiply them by the number of worker pools.
#[test]
fn images_that_the_api_server_refuses_have_a_short_cause() {
    let pools = vec![pool("w", "1.0.0", json!({})); 20];
    let shoot = shoot("1.30.1", pools.into(), automatic(true, true));
    let profile = profile("1.30.1, 1.30.5", images("1.0.0, 1.1.0"), "major");

    let plan = maintained_with(&shoot, &profile, SETTINGS, None, Some(&"x".repeat(1_000_000)));

    let lengths: Vec<_> = plan.results.images.iter().map(|(_, result)| result.description.len()).collect();
    assert!(lengths.len() == 20 && lengths.iter().all(|length| *length < 1_000), "{lengths:?}");
}
