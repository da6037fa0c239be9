//! Actors by kind and activity, where Go's programs list goroutines.

use std::{collections::BTreeMap, fmt::Write as _};

use actix_web::{HttpResponse, web};
use kit::{ActorState, StatusRegistry};

use super::plain;

pub(super) async fn list(status_registry: web::Data<StatusRegistry>) -> HttpResponse {
    plain(table(&status_registry.snapshot()))
}

/// A line for each kind (the first word of the path) and activity, the largest number first.
fn table(actors: &[ActorState]) -> String {
    let mut groups: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for actor in actors {
        let kind = actor.path.split('/').next().unwrap_or_default();
        *groups.entry((kind, format!("{:?}", actor.activity))).or_default() += 1;
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, count)| std::cmp::Reverse(*count));

    let mut text = format!("actors: {}\n", actors.len());
    for ((kind, activity), count) in groups {
        let _ = writeln!(text, "{count:>8}  {activity:<12}  {kind}"); // writing into a String cannot fail
    }
    text
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kit::{Activity, Role};

    use super::*;

    #[test]
    fn actors_are_counted_by_kind_and_activity() {
        let status_registry = StatusRegistry::default();
        for name in ["health", "health/a", "health/b", "managedresource"] {
            status_registry.enter(name, Role::Object);
        }
        for name in ["health/a", "health/b"] {
            status_registry
                .enter(name, Role::Object)
                .update(Timestamp::UNIX_EPOCH, |state| state.activity = Activity::Idle);
        }

        let text = table(&status_registry.snapshot());

        assert_eq!(
            text,
            "actors: 4\n       2  Idle          health\n       1  Starting      health\n       1  Starting      managedresource\n"
        );
    }
}
