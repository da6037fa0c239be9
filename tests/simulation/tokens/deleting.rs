//! ServiceAccounts that are deleted with their Secret (spec 30 §9).

use serde_json::{Value, json};
use tracing::Level;

use super::{FINALIZER, PURPOSE, SA, access, account, asked, given, put, secret, start, start_deleting, token};
use crate::{
    log_capture::logged,
    world::{NAMESPACE, World, seconds, world},
};

async fn delete(world: &World, name: &str) {
    world.ask("DELETE", &format!("/api/v1/namespaces/{NAMESPACE}/secrets/{name}"), None).await.expect("it is deleted");
    seconds(2).await;
}

/// spec 30 scenario 33
#[test]
fn service_account_is_deleted_before_the_secret() {
    world(1, |world| async move {
        start_deleting(&world).await;
        given(&world, &[], &[]).await;
        assert_eq!(secret(&world, "access")["metadata"]["finalizers"], json!([FINALIZER]));
        world.sim.clear_requests();

        delete(&world, "access").await;
        assert_eq!((secret(&world, "access"), account(&world)), (Value::Null, None));
        let writes = world.writes();
        assert_eq!(writes, ["delete serviceaccounts client", "patch secrets access"]);
    });
}

/// spec 30 §9 D3: a ServiceAccount that another client deleted is no error and no deletion of ours.
#[test]
fn service_account_that_is_gone_is_not_logged_as_deleted() {
    for (is_gone, expected) in [(false, "a ServiceAccount is deleted"), (true, "there is no ServiceAccount to delete")]
    {
        let ((), log) = logged(Level::INFO, || {
            world(1, |world| async move {
                start_deleting(&world).await;
                given(&world, &[], &[]).await;
                if is_gone {
                    world.sim.remove("serviceaccounts", NAMESPACE, "client").expect("a ServiceAccount");
                }

                delete(&world, "access").await;
                assert_eq!((secret(&world, "access"), account(&world)), (Value::Null, None));
            });
        });

        let said: Vec<_> = log.lines().filter(|line| line.contains("ServiceAccount")).collect();
        assert!(said.iter().any(|line| line.contains(expected)), "{said:?}");
        assert!(!is_gone || said.iter().all(|line| !line.contains("is deleted")), "{said:?}");
    }
}

/// spec 30 scenarios 34 and 35
#[test]
fn skip_deletion_is_exactly_true() {
    for (text, stays) in [("true", true), ("True", false), ("1", false)] {
        world(1, |world| async move {
            start_deleting(&world).await;
            let mut object = access("access", &[(&format!("{SA}skip-deletion"), text)], &[]);
            object["metadata"]["finalizers"] = json!([FINALIZER]);
            world.sim.put(object).expect("a Secret");
            seconds(2).await;
            let is_held = secret(&world, "access")["metadata"].get("finalizers").is_some();
            assert_eq!((is_held, token(&world).is_empty()), (!stays, false));

            delete(&world, "access").await;
            assert_eq!((secret(&world, "access"), account(&world).is_some()), (Value::Null, stays), "{text}");
        });
    }
}

/// spec 30 scenario 36
#[test]
fn service_account_that_another_secret_names_stays() {
    world(1, |world| async move {
        start_deleting(&world).await;
        put(&world, "other", &[], &[]);
        given(&world, &[], &[]).await;

        delete(&world, "access").await;
        assert_eq!((secret(&world, "access"), account(&world).is_some()), (Value::Null, true));
        delete(&world, "other").await;
        assert_eq!((secret(&world, "other"), account(&world)), (Value::Null, None));
    });
}

/// spec 30 scenario 37
#[test]
fn finalizer_is_removed_and_the_service_account_stays_with_deletion_off() {
    world(1, |world| async move {
        start(&world).await;
        given(&world, &[], &[]).await;
        world.sim.edit("secrets", NAMESPACE, "access", |live| live["metadata"]["finalizers"] = json!([FINALIZER]));
        seconds(2).await;

        delete(&world, "access").await;
        assert_eq!((secret(&world, "access"), account(&world).is_some()), (Value::Null, true));
    });
}

/// spec 30 §9: finalizers of flag mode may be on Secrets of any class, and must not block them or their Namespace.
#[test]
fn finalizer_of_flag_mode_is_removed_with_deletion_off_whatever_the_class() {
    for labels in [json!({ PURPOSE: "token-requestor" }), json!({ PURPOSE: "token-requestor", super::CLASS: "garden" })]
    {
        for late in [false, true] {
            let labels = labels.clone();
            world(1, |world| async move {
                let mut object = access("access", &[], &[]);
                object["metadata"]["finalizers"] = json!([FINALIZER]);
                object["metadata"]["labels"] = labels.clone();
                world.sim.put(object).expect("a Secret");
                if late {
                    delete(&world, "access").await;
                }
                start(&world).await;
                if !late {
                    let is_held = secret(&world, "access")["metadata"].get("finalizers").is_some();
                    assert!(is_held, "it is not going yet: {labels}");
                    delete(&world, "access").await;
                }
                seconds(2).await;

                assert_eq!((secret(&world, "access"), account(&world)), (Value::Null, None), "{labels} {late}");
                let is_write = |asked: &String| asked.contains("serviceaccounts");
                assert!(!asked(&world).iter().any(is_write), "{:?}", asked(&world));
            });
        }
    }
}

/// spec 30 §9 D2, D3 and D5: the ServiceAccount stays only if another instance still wants the token.
#[test]
fn changed_label_releases_the_secret() {
    for (labels, stays) in [
        (json!({}), false),
        (json!({ super::CLASS: "shoot" }), false),
        (json!({ super::CLASS: "garden" }), false),
        (json!({ PURPOSE: "token-requestor" }), true),
        (json!({ PURPOSE: "token-requestor", super::CLASS: "garden" }), true),
    ] {
        world(1, |world| async move {
            start_deleting(&world).await;
            given(&world, &[], &[]).await;
            world.sim.edit("secrets", NAMESPACE, "access", |live| live["metadata"]["labels"] = labels.clone());
            seconds(2).await;

            let is_held = secret(&world, "access")["metadata"].get("finalizers").is_some();
            assert_eq!((is_held, account(&world).is_some()), (false, stays), "{labels}");
        });
    }
}

/// spec 30 §9 D8
#[test]
fn secret_in_deletion_gets_no_token() {
    world(1, |world| async move {
        start_deleting(&world).await;
        let mut object = access("access", &[], &[]);
        object["metadata"]["finalizers"] = json!(["example.com/other"]);
        object["metadata"]["labels"] = json!({});
        world.sim.put(object).expect("a Secret");
        delete(&world, "access").await;
        let ours = access("access", &[], &[])["metadata"]["labels"].clone();
        world.sim.edit("secrets", NAMESPACE, "access", |live| live["metadata"]["labels"] = ours.clone());
        seconds(10).await;

        assert_eq!((token(&world).as_str(), asked(&world).iter().any(|asked| asked.contains("token"))), ("", false));
    });
}

/// spec 30 §9 D3: no ServiceAccount has such a name, so none is deleted.
#[test]
fn secret_with_an_impossible_service_account_name_is_released() {
    for (part, text) in [("name", "a/b"), ("name", ".."), ("namespace", "a/b"), ("namespace", "..")] {
        world(1, |world| async move {
            start_deleting(&world).await;
            given(&world, &[(&format!("{SA}{part}"), text)], &[]).await;
            assert_eq!(secret(&world, "access")["metadata"]["finalizers"], json!([FINALIZER]), "{part} {text}");

            delete(&world, "access").await;
            assert_eq!(secret(&world, "access"), Value::Null, "{part} {text}");
        });
    }
}
