//! Kubernetes versions (spec 84 C.8).

use super::*;

fn updated(subject: &str, old: &str, new: &str, reason: &str) -> String {
    format!("{subject}: Updated Kubernetes version from \"{old}\" to \"{new}\". Reason: {reason}")
}

/// spec 84 C.8, scenarios 40, 41, 43, 44, 45 and 46
#[test]
fn control_plane_is_updated_automatically_or_by_force() {
    for (current, is_automatic, versions, expected) in [
        ("1.30.1", true, "1.30.1, 1.30.5, 1.31.1, 1.31.5", Some(("1.30.5", AUTOMATIC))),
        ("1.30.1", false, "1.30.1, 1.30.5", None),
        ("1.30.1", false, "1.30.1 expired, 1.30.5, 1.31.1", Some(("1.30.5", EXPIRED))),
        ("1.30.1", false, "1.30.1 later, 1.30.5", None),
        ("1.30.5", false, "1.30.5 expired, 1.31.1, 1.31.5", Some(("1.31.5", EXPIRED))),
        ("1.30.5", false, "1.30.5 expired, 1.31.1 expired, 1.31.5 expired", Some(("1.31.5", EXPIRED))),
        ("1.31.5", true, "1.31.5, 1.32.0", None),
        ("1.30.3", false, "1.30.1, 1.30.5, 1.31.1", Some(("1.30.5", ABSENT))),
        ("1.30.1", true, "1.30.1, 1.30.4, 1.30.5 deprecated", Some(("1.30.4", AUTOMATIC))),
        ("1.30.1", true, "1.30.1, 1.30.4 deprecated, 1.30.5 deprecated", Some(("1.30.5", AUTOMATIC))),
        ("1.30.1", true, "1.30.1, 1.30.4, 1.30.5 preview", Some(("1.30.4", AUTOMATIC))),
        ("1.30.1", true, "1.30.1, 1.30.5 staged", Some(("1.30.5", AUTOMATIC))),
        ("1.30.1", true, "1.30.1, 1.30.4, 1.30.5 unavailable", Some(("1.30.4", AUTOMATIC))),
        ("v1.30.1", false, "1.30.1, 1.30.5", None),
        ("1.30.1", true, "1.30.1, odd, 1.30.2", Some(("1.30.2", AUTOMATIC))),
    ] {
        let shoot = shoot(current, json!([]), automatic(is_automatic, true));
        let plan = maintained(&shoot, &profile(versions, json!([]), "major"));
        match expected {
            Some((new, reason)) => {
                let text = updated("Control Plane", current, new, reason);
                assert_eq!((version_of(&plan), description(&plan)), (new, format!("{GOOD}{text}")), "{versions}");
                assert_eq!(
                    plan.results.events().into_iter().map(|event| event.note).collect::<Vec<_>>(),
                    [format!("{text}.")]
                );
            }
            None => assert_eq!((version_of(&plan), plan.results.is_changed()), (current, false), "{versions}"),
        }
    }
}

/// spec 84 C-13, C.13, scenarios 42 and 43
#[test]
fn control_plane_without_a_target_fails() {
    for versions in ["1.30.5 expired, 1.31.1 preview, 1.31.5 preview", "1.30.5 expired, 1.32.0"] {
        let plan = maintained(&shoot("1.30.5", json!([]), json!({})), &profile(versions, json!([]), "major"));

        let texts = plan.results.texts();
        let expected = format!(
            "(0/1) maintenance operations successful. Control Plane: Kubernetes version update failed. Reason for update: {EXPIRED}"
        );
        assert_eq!((version_of(&plan), texts.description), ("1.30.5", expected));
        assert_eq!(
            texts.failure_reason,
            "Control Plane: Kubernetes maintenance failure due to: could not determine higher \
            suitable version than \"1.30.5\": cannot perform forceful update of expired version \"1.30.5\". No suitable \
            version found in CloudProfile - this is most likely a misconfiguration of the CloudProfile"
        );
    }
}

/// spec 84 C.8, scenarios 47 and 48
#[test]
fn pools_follow_their_control_plane() {
    let own = |version: &str| json!({ "kubernetes": { "version": version } });
    let image = json!([{ "version": "1.0.0" }]);
    let versions = profile("1.30.5 expired, 1.31.1, 1.31.5", image.clone(), "major");
    let pools = json!([pool("a", "1.0.0", own("1.30.5")), pool("b", "1.0.0", json!({}))]);

    let plan = maintained(&shoot("1.31.1", pools.clone(), json!({})), &versions);
    assert_eq!(
        (version_of(&plan), &plan.spec["provider"]["workers"][0]["kubernetes"]),
        ("1.31.1", &own("1.31.1")["kubernetes"])
    );
    assert_eq!(plan.spec["provider"]["workers"][1], pools[1]);
    assert_eq!(description(&plan), format!("{GOOD}{}", updated("Worker pool \"a\"", "1.30.5", "1.31.1", EXPIRED)));

    let plan = maintained(&shoot("1.30.5", pools, json!({})), &versions);
    assert_eq!(
        (version_of(&plan), &plan.spec["provider"]["workers"][0]["kubernetes"]),
        ("1.31.5", &own("1.31.5")["kubernetes"])
    );
    let (control_plane, of_pool) = (
        updated("Control Plane", "1.30.5", "1.31.5", EXPIRED),
        updated("Worker pool \"a\"", "1.30.5", "1.31.5", EXPIRED),
    );
    assert_eq!(description(&plan), format!("{GOOD}{control_plane}, {of_pool}"));
}

/// spec 84 C.8
#[test]
fn pools_are_never_lowered_to_their_control_plane() {
    let own = |version: &str| json!({ "kubernetes": { "version": version } });
    for (version, versions) in [("1.31.3", "1.31.1, 1.31.5"), ("1.31.1", "1.31.1 expired, 1.32.0"), ("odd", "1.31.1")] {
        let pools = json!([pool("a", "1.0.0", own(version))]);
        let shoot = shoot("1.31.1", pools.clone(), json!({}));
        let plan =
            maintained(&shoot, &profile(&format!("{versions}, 1.31.1"), json!([{ "version": "1.0.0" }]), "major"));

        if version == "1.31.1" {
            assert_eq!(
                (version_of(&plan), &plan.spec["provider"]["workers"][0]["kubernetes"]["version"]),
                ("1.32.0", &json!("1.32.0"))
            );
        } else {
            assert_eq!(plan.spec["provider"]["workers"], pools, "{version}");
        }
    }
}

/// spec 84 C.8: the version of a pool is written in its canonical form
#[test]
fn versions_are_written_as_in_the_profile_or_canonically() {
    let pools = json!([pool("a", "1.0.0", json!({ "kubernetes": { "version": "1.30.1" } }))]);
    let plan = maintained(
        &shoot("1.30.1", pools, automatic(true, true)),
        &profile("1.30.1, v1.30.2", json!([{ "version": "1.0.0" }]), "major"),
    );

    assert_eq!(
        (version_of(&plan), &plan.spec["provider"]["workers"][0]["kubernetes"]["version"]),
        ("v1.30.2", &json!("1.30.2"))
    );
}
