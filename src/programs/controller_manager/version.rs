//! The version of the garden cluster (spec 80 §11 step 7). It is checked before the first reconcile of a leader.

use std::time::Duration;

use cluster::{ApiError, Cluster, KubernetesVersion};
use kit::Deadline;
use tokio::time::sleep;

/// The oldest version that works.
const OLDEST: KubernetesVersion = KubernetesVersion::new(1, 32);
const LIMIT: Duration = Duration::from_secs(10);
const FIRST_BACK_OFF: Duration = Duration::from_secs(1);
const MAX_BACK_OFF: Duration = Duration::from_secs(30);

/// The garden cluster cannot be managed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum VersionError {
    /// Its version is too old.
    #[error(
        "failed bootstrapping garden cluster: the Kubernetes version of the Garden cluster must be at least {OLDEST}"
    )]
    TooOld,
    /// It reports no version number.
    #[error("failed bootstrapping garden cluster: invalid semantic version")]
    Invalid,
}

/// Reads the version, and repeats that until the server answers. Fails if the answer is not a version, or if the version
/// is too old.
pub(super) async fn check(garden: &Cluster) -> Result<(), VersionError> {
    let mut back_off = FIRST_BACK_OFF;
    loop {
        match garden.git_version(Deadline::after(LIMIT)).await {
            Ok(version) => {
                judge(&version)?;
                tracing::info!(logger = "bootstrap", version, "Successfully bootstrapped Garden cluster");
                return Ok(());
            }
            Err(error) => report(&error),
        }
        sleep(garden.random().jitter(back_off, 1.0)).await;
        back_off = (back_off * 2).min(MAX_BACK_OFF);
    }
}

fn report(error: &ApiError) {
    tracing::error!(%error, "The version of the garden cluster cannot be read; reading it again");
}

fn judge(version: &str) -> Result<(), VersionError> {
    let version = KubernetesVersion::parse(version).ok_or(VersionError::Invalid)?;
    if version < OLDEST { Err(VersionError::TooOld) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 80 scenario 18, trap 8
    #[test]
    fn version_of_the_garden_cluster_is_judged_without_vendor_suffixes() {
        for good in ["v1.32.0", "1.32.0", "v1.32.0-rc.1+abc", "v1.32.0-gke.1", "v1.36.3~x", "v2.0.0"] {
            assert_eq!(judge(good), Ok(()), "{good}");
        }
        for old in ["v1.31.9", "v1.9.0", "v0.40.0"] {
            assert_eq!(judge(old), Err(VersionError::TooOld), "{old}");
        }
        for no_version in ["", "v", "-1.32", "latest", "1.x.0", "1.32.x"] {
            assert_eq!(judge(no_version), Err(VersionError::Invalid), "{no_version}");
        }
    }

    /// spec 80 §11 step 7
    #[test]
    fn version_errors_have_the_texts_that_operators_search_for() {
        let text = VersionError::TooOld.to_string();
        assert!(text.ends_with("the Kubernetes version of the Garden cluster must be at least 1.32"), "{text}");
        assert!(VersionError::Invalid.to_string().ends_with("invalid semantic version"));
    }
}
