//! What users do to a filled cluster, one change after the other. Pure: the same cluster sees the same changes.

use super::bundle::{Bundle, Shape};

const SEED: u64 = 1;

/// A change by a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Edits the settings of a bundle by hand.
    Edit(Bundle),
    /// Deletes the settings of a bundle by hand.
    Delete(Bundle),
    /// Puts another release into the Secret of a bundle.
    Release(Bundle, usize),
    /// Puts manifests that do not decode into the Secret of a bundle.
    Break(Bundle, usize),
    /// Restarts the Deployment of a bundle, as `kubectl rollout restart` does.
    Restart(Bundle, usize),
}

/// The endless sequence of changes.
pub(super) struct Changes {
    bundles: usize,
    random: fastrand::Rng,
    count: usize,
    broken: Option<Bundle>,
}

impl Changes {
    /// Changes of a cluster with so many bundles, at least one.
    pub(super) fn of(bundles: usize) -> Self {
        Self { bundles, random: fastrand::Rng::with_seed(SEED), count: 0, broken: None }
    }

    /// A bundle without a problem. The first one is sound, and so are most others.
    fn sound(&mut self) -> Bundle {
        let start = self.random.usize(..self.bundles);
        let mut candidates = (start..self.bundles).chain(0..start).map(|number| Bundle { number });
        candidates.find(|bundle| bundle.shape() == Shape::Sound).unwrap_or(Bundle { number: 0 })
    }

    fn application(&mut self) -> Bundle {
        Bundle { number: self.random.usize(..self.bundles) / 10 * 10 }
    }
}

impl Iterator for Changes {
    type Item = Change;

    /// At most one bundle is broken at a time, and it is mended before the next one.
    fn next(&mut self) -> Option<Change> {
        self.count += 1;
        let release = self.count + 1;
        Some(match self.count % 8 {
            1 | 4 | 7 => Change::Edit(self.sound()),
            2 | 6 => Change::Release(self.sound(), release),
            3 => Change::Delete(self.sound()),
            5 => Change::Restart(self.application(), release),
            _ => match self.broken.take() {
                Some(bundle) => Change::Release(bundle, release),
                None => {
                    let bundle = self.sound();
                    self.broken = Some(bundle);
                    Change::Break(bundle, release)
                }
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_the_same_each_time_and_concern_sound_bundles() {
        for bundles in [1, 5, 100, 10_000] {
            let changes: Vec<_> = Changes::of(bundles).take(200).collect();

            assert_eq!(changes, Changes::of(bundles).take(200).collect::<Vec<_>>());
            for change in changes {
                let (Change::Edit(bundle)
                | Change::Delete(bundle)
                | Change::Release(bundle, _)
                | Change::Break(bundle, _)
                | Change::Restart(bundle, _)) = change;
                assert!(bundle.shape() == Shape::Sound && bundle.number < bundles, "{change:?}");
                assert!(bundle.is_application() || !matches!(change, Change::Restart(..)));
            }
        }
    }

    #[test]
    fn changes_mend_a_bundle_before_they_break_another() {
        let mut broken = None;
        for change in Changes::of(100).take(200) {
            match change {
                Change::Break(bundle, _) => assert_eq!(broken.replace(bundle), None),
                Change::Release(bundle, _) if broken == Some(bundle) => broken = None,
                _ => {}
            }
        }
    }
}
