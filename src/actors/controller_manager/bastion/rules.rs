//! Which Bastions are deleted, and when (spec 81 A.3). Pure.

use cluster::object::{self, NamespacedName};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::actors::controller_manager::fields::{text, time};

/// What counts of a Bastion (spec 81 A.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bastion {
    /// The name of its Shoot, in its namespace.
    pub shoot: String,
    /// The Seed it runs on; `None` if that is not set.
    pub seed: Option<String>,
    /// When it expires; `None` if that is not set.
    pub expiration: Option<Timestamp>,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// It is being deleted.
    pub is_deleting: bool,
}

/// What counts of a Shoot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShootState {
    /// The Seed it is scheduled to; `None` if it is not scheduled.
    pub seed: Option<String>,
    /// It is being deleted.
    pub is_deleting: bool,
}

/// What to do with a Bastion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: it is being deleted.
    Leave,
    /// Look again at this time; `None` if there is none.
    Wait(Option<Timestamp>),
    /// Delete it.
    Delete(Reason),
}

/// Why a Bastion is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Its Shoot does not exist.
    ShootGone,
    /// Its Shoot is being deleted.
    ShootDeleting,
    /// Its Shoot is on this Seed now.
    Moved {
        /// The Seed; `None` if the Shoot is on none.
        to: Option<String>,
    },
    /// It expired at this time.
    Expired(Timestamp),
    /// It reached its maximum lifetime.
    TooOld,
}

impl Bastion {
    /// Reads a Bastion.
    pub fn of(object: &Value) -> Self {
        Self {
            shoot: text(object, "/spec/shootRef/name").to_owned(),
            seed: seed_of(object),
            expiration: time(object, "/status/expirationTimestamp"),
            created: time(object, "/metadata/creationTimestamp"),
            is_deleting: object::deletion_timestamp(object).is_some(),
        }
    }

    /// Returns its Shoot if it is in this namespace.
    pub fn shoot_in(&self, namespace: &str) -> NamespacedName {
        NamespacedName::new(namespace, self.shoot.as_str())
    }
}

impl ShootState {
    /// Reads a Shoot.
    pub fn of(object: &Value) -> Self {
        Self { seed: seed_of(object), is_deleting: object::deletion_timestamp(object).is_some() }
    }

    /// Returns true if a change into `new` concerns its Bastions. The first scheduling does not (spec 81 A.1).
    pub fn has_moved_to(&self, new: &Self) -> bool {
        (self.seed.is_some() && self.seed != new.seed) || self.is_deleting != new.is_deleting
    }
}

/// Judges a Bastion. `shoot` returns its Shoot, or `None` if that does not exist.
pub fn judge<E>(
    bastion: &Bastion,
    now: Timestamp,
    max_lifetime: SignedDuration,
    shoot: impl FnOnce() -> Result<Option<ShootState>, E>,
) -> Result<Verdict, E> {
    if bastion.is_deleting {
        return Ok(Verdict::Leave);
    }
    let shoot = if bastion.shoot.is_empty() { None } else { shoot()? };
    let oldest = bastion.created.and_then(|created| created.checked_add(max_lifetime).ok());
    Ok(match shoot {
        None => Verdict::Delete(Reason::ShootGone),
        Some(shoot) if shoot.is_deleting => Verdict::Delete(Reason::ShootDeleting),
        Some(shoot) if shoot.seed != bastion.seed => Verdict::Delete(Reason::Moved { to: shoot.seed }),
        Some(_) => match bastion.expiration.filter(|expiration| now >= *expiration) {
            Some(expiration) => Verdict::Delete(Reason::Expired(expiration)),
            None if oldest.is_some_and(|oldest| now >= oldest) => Verdict::Delete(Reason::TooOld),
            None => Verdict::Wait(bastion.expiration.into_iter().chain(oldest).min()),
        },
    })
}

impl Reason {
    /// The labels of all reasons in metrics.
    pub const LABELS: [&str; 5] = ["expired", "too_old", "shoot_gone", "shoot_deleting", "shoot_moved"];

    /// Returns its label in metrics.
    pub fn label(&self) -> &'static str {
        match self {
            Self::ShootGone => "shoot_gone",
            Self::ShootDeleting => "shoot_deleting",
            Self::Moved { .. } => "shoot_moved",
            Self::Expired(_) => "expired",
            Self::TooOld => "too_old",
        }
    }

    /// Logs why a Bastion is deleted.
    pub(super) fn log(&self, bastion: &Bastion, max_lifetime: SignedDuration) {
        match self {
            Self::ShootGone => tracing::info!("Deleting bastion because target shoot is gone"),
            Self::ShootDeleting => tracing::info!("Deleting bastion because target shoot is in deletion"),
            Self::Moved { to } => {
                let (old, new) = (bastion.seed.as_deref().unwrap_or_default(), to.as_deref().unwrap_or_default());
                tracing::info!(
                    oldSeedName = old,
                    newSeedName = new,
                    "Deleting bastion because the referenced Shoot has been migrated to another Seed"
                );
            }
            Self::Expired(expiration) => tracing::info!(expirationTimestamp = %expiration, "Deleting expired bastion"),
            Self::TooOld => tracing::info!(
                creationTimestamp = bastion.created.map(tracing::field::display),
                maxLifetime = %max_lifetime,
                "Deleting bastion because it reached its maximum lifetime"
            ),
        }
    }
}

/// An empty name counts as none.
fn seed_of(object: &Value) -> Option<String> {
    Some(text(object, "/spec/seedName")).filter(|seed| !seed.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reason_of_each_deletion_has_a_label_of_its_own() {
        let expired = Reason::Expired(Timestamp::UNIX_EPOCH);
        let all = [expired, Reason::TooOld, Reason::ShootGone, Reason::ShootDeleting, Reason::Moved { to: None }];

        assert_eq!(all.each_ref().map(Reason::label), Reason::LABELS);
    }

    const DAY: SignedDuration = SignedDuration::from_hours(24);

    fn now() -> Timestamp {
        "2026-08-21T12:00:00Z".parse().unwrap()
    }

    fn bastion(seed: Option<&str>, age: SignedDuration, expires_in: Option<SignedDuration>) -> Bastion {
        Bastion {
            shoot: "s".to_owned(),
            seed: seed.map(str::to_owned),
            expiration: expires_in.map(|left| now() + left),
            created: Some(now() - age),
            is_deleting: false,
        }
    }

    fn shoot(seed: Option<&str>) -> Option<ShootState> {
        Some(ShootState { seed: seed.map(str::to_owned), is_deleting: false })
    }

    fn judged(bastion: &Bastion, shoot: Option<ShootState>) -> Verdict {
        judge(bastion, now(), DAY, || Ok::<_, ()>(shoot)).unwrap()
    }

    fn seconds(seconds: i64) -> SignedDuration {
        SignedDuration::from_secs(seconds)
    }

    /// spec 81 A.3, scenarios 1 and 2
    #[test]
    fn bastion_goes_with_its_shoot() {
        let bastion = bastion(Some("a"), seconds(1), None);
        let deleting = Some(ShootState { seed: Some("a".to_owned()), is_deleting: true });

        assert_eq!(judged(&bastion, None), Verdict::Delete(Reason::ShootGone));
        assert_eq!(judged(&bastion, deleting), Verdict::Delete(Reason::ShootDeleting));
        assert!(matches!(judged(&bastion, shoot(Some("a"))), Verdict::Wait(Some(_))));
    }

    /// spec 81 A.3 rule 2
    #[test]
    fn bastion_without_the_name_of_a_shoot_has_none_and_nobody_asks() {
        let bastion = Bastion { shoot: String::new(), ..bastion(None, seconds(1), None) };

        assert_eq!(judge(&bastion, now(), DAY, || Err(())), Ok(Verdict::Delete(Reason::ShootGone)));
    }

    /// spec 81 A.3 rule 1
    #[test]
    fn bastion_in_deletion_is_left_alone() {
        let bastion = Bastion { is_deleting: true, ..bastion(Some("a"), DAY, None) };

        assert_eq!(judge(&bastion, now(), DAY, || Err(())), Ok(Verdict::Leave));
    }

    /// spec 81 A.3 rule 5, scenario 3
    #[test]
    fn bastion_goes_when_its_shoot_is_on_another_seed() {
        for (of_bastion, of_shoot, moves) in [
            (Some("a"), Some("b"), true),
            (Some("a"), None, true),
            (None, Some("a"), true),
            (None, None, false),
            (Some("a"), Some("a"), false),
        ] {
            let verdict = judged(&bastion(of_bastion, seconds(1), None), shoot(of_shoot));

            let expected = Verdict::Delete(Reason::Moved { to: of_shoot.map(str::to_owned) });
            assert_eq!(verdict == expected, moves, "{of_bastion:?} {of_shoot:?}");
        }
    }

    /// spec 81 A.3 rules 6 to 8, scenarios 4, 6 and 7
    #[test]
    fn bastion_lives_until_its_expiration_and_its_maximum_lifetime() {
        let judged = |age, expires_in| judged(&bastion(None, age, expires_in), shoot(None));
        let (hour, day) = (SignedDuration::from_hours(1), DAY);

        assert_eq!(judged(seconds(1), Some(seconds(30))), Verdict::Wait(Some(now() + seconds(30))));
        assert_eq!(judged(seconds(1), Some(seconds(0))), Verdict::Delete(Reason::Expired(now())));
        assert_eq!(judged(day + hour, Some(hour)), Verdict::Delete(Reason::TooOld));
        assert_eq!(judged(day, None), Verdict::Delete(Reason::TooOld));
        assert_eq!(judged(day - hour, None), Verdict::Wait(Some(now() + hour)));
        assert_eq!(judged(day - hour, Some(hour * 2)), Verdict::Wait(Some(now() + hour)));
    }

    /// spec 81 A.3: a maximum lifetime of zero
    #[test]
    fn bastion_that_may_not_live_is_deleted_at_once() {
        let verdict = judge(&bastion(None, seconds(0), None), now(), SignedDuration::ZERO, || Ok::<_, ()>(shoot(None)));

        assert_eq!(verdict, Ok(Verdict::Delete(Reason::TooOld)));
    }

    #[test]
    fn bastion_with_times_out_of_range_waits_without_a_timer() {
        let bastion = Bastion { created: Some(Timestamp::MAX), ..bastion(None, seconds(0), None) };

        assert_eq!(judged(&bastion, shoot(None)), Verdict::Wait(None));
    }

    /// spec 81 A.1, scenario 8
    #[test]
    fn shoot_concerns_its_bastions_when_it_leaves_its_seed_or_is_deleted() {
        let state = |seed: Option<&str>, is_deleting| ShootState { seed: seed.map(str::to_owned), is_deleting };
        let alive = |seed| state(seed, false);

        assert!(!alive(None).has_moved_to(&alive(Some("a"))));
        assert!(alive(Some("a")).has_moved_to(&alive(Some("b"))));
        assert!(alive(Some("a")).has_moved_to(&alive(None)));
        assert!(alive(None).has_moved_to(&state(None, true)));
        assert!(!alive(Some("a")).has_moved_to(&alive(Some("a"))));
    }

    /// spec 81 A.2
    #[test]
    fn bastion_of_any_shape_can_be_read() {
        let read = Bastion::of(&json!({
            "metadata": { "creationTimestamp": "2026-08-21T12:00:00Z" },
            "spec": { "shootRef": { "name": "s" }, "seedName": "" }, "status": { "expirationTimestamp": null },
        }));

        let expected =
            Bastion { shoot: "s".to_owned(), seed: None, expiration: None, created: Some(now()), is_deleting: false };
        assert_eq!(read, expected);
        assert_eq!(Bastion::of(&json!({ "spec": 1, "status": [] })).shoot, "");
    }
}
