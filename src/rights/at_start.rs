//! What a replica logs at its start about a cluster: a version that the program does not support, and each right that its
//! configuration needs and that it lacks.

use std::{collections::BTreeMap, time::Duration};

use cluster::{ApiError, Cluster, Context, KubernetesVersion};
use futures::future::join;
use kit::{Deadline, Priority};
use tokio::time::sleep;

use super::{NeededRight, Right, needed_by, reviews::Reviews};

/// Who asks, in the request scheduler.
const KEY: &str = "check at the start";
/// An attempt that takes longer begins again where it was.
const ATTEMPT: Duration = Duration::from_secs(60);
const FIRST_BACK_OFF: Duration = Duration::from_secs(1);
const MAX_BACK_OFF: Duration = Duration::from_secs(60);
/// Most lines about one cluster.
const MOST_LINES: usize = 200;

/// Rights of one object that are missing: one line of the log.
type MissingRights<'a> = Vec<&'a NeededRight>;

/// Asks once for the version of a cluster and for each right in it, and logs what is wrong. While the API server does not answer
/// a question, asks it again after growing pauses. Neither check waits for the other. Ends when all is known, or when the server
/// refuses the questions.
pub(crate) async fn check(cluster: &Cluster, needed: &[NeededRight]) {
    join(check_version(cluster), check_rights(cluster, needed)).await;
}

/// As [`check`], for a cluster whose API server another cluster has, too.
pub(crate) async fn check_rights(cluster: &Cluster, needed: &[NeededRight]) {
    let name = cluster.options().label.as_str();
    let mut reviews = Reviews::new(needed, name);
    let asked = until_answered(cluster, async || {
        let context = Context::new(Priority::Low, Deadline::after(ATTEMPT), KEY);
        reviews.go_on(cluster, &context).await
    });
    match asked.await {
        Ok(()) => report(name, &reviews),
        Err(error) => {
            tracing::info!(cluster = name, %error, "It is not known which rights are missing: the API server answers no SelfSubjectAccessReview");
        }
    }
}

/// Warns if the programs do not support the version of the API server.
async fn check_version(cluster: &Cluster) {
    let name = cluster.options().label.as_str();
    match until_answered(cluster, async || cluster.git_version(Deadline::after(ATTEMPT)).await).await {
        Ok(version) => {
            if let Some(range) = unsupported(&version) {
                tracing::warn!(cluster = name, version, "The version of Kubernetes is not supported: {range}");
            }
        }
        Err(error) => {
            tracing::info!(cluster = name, %error, "The version of Kubernetes is not known");
        }
    }
}

/// Asks again after growing pauses while the API server does not answer. Fails if it refuses the question.
async fn until_answered<T>(
    cluster: &Cluster,
    mut ask: impl AsyncFnMut() -> Result<T, ApiError>,
) -> Result<T, ApiError> {
    let name = cluster.options().label.as_str();
    let mut back_off = FIRST_BACK_OFF;
    loop {
        match ask().await {
            Err(error) if !is_final(&error) => {
                tracing::debug!(cluster = name, %error, "The version or the rights are not known yet; asking again");
            }
            answer => return answer,
        }
        sleep(cluster.random().jitter(back_off, 1.0)).await;
        back_off = (back_off * 2).min(MAX_BACK_OFF);
    }
}

/// Returns a word about a `gitVersion` that the programs do not support.
pub(crate) fn unsupported(git_version: &str) -> Option<String> {
    let (oldest, newest) = KubernetesVersion::SUPPORTED.into_inner();
    let is_supported =
        KubernetesVersion::parse(git_version).is_some_and(|version| oldest <= version && version <= newest);
    (!is_supported).then(|| format!("the program supports Kubernetes {oldest} to {newest}"))
}

/// Whether the server refuses the question. Credentials may be renewed, and an overloaded server recovers.
fn is_final(error: &ApiError) -> bool {
    error.code().is_some_and(|code| (400..500).contains(&code) && !matches!(code, 401 | 408 | 429))
}

fn report(cluster: &str, reviews: &Reviews<'_>) {
    let missing = missing(reviews);
    missing.iter().take(MOST_LINES).for_each(|rights| log(cluster, rights));
    let hidden = missing.len().saturating_sub(MOST_LINES);
    if hidden > 0 {
        tracing::warn!(cluster, hidden, "The process lacks more rights; the command check shows all");
    }
    let undecided = reviews.undecided().count();
    if undecided > 0 {
        tracing::info!(
            cluster,
            undecided,
            "It is not known whether the process has some rights: the API server answers without a decision"
        );
    }
    let needed = reviews.all().count();
    let granted = reviews.all().filter(|(_, answer)| *answer == Some(true)).count();
    tracing::info!(cluster, needed, granted, "The rights that the configuration needs are checked");
}

fn log(cluster: &str, rights: &MissingRights<'_>) {
    let Some(first) = rights.first() else { return };
    let verbs: Vec<&str> = rights.iter().map(|needed| needed.right.verb.as_str()).collect();
    let verbs = verbs.join(", ");
    let Right { namespace, object, .. } = &first.right;
    let (namespace, resource) = (namespace.as_deref(), object.to_string());
    let (needed_by, remedy) = (needed_by(rights), first.remedy());
    match &first.without {
        None => {
            tracing::warn!(cluster, namespace, resource, verbs, needed_by, remedy, "The process lacks a right");
        }
        Some(without) => {
            tracing::info!(
                cluster,
                namespace,
                resource,
                verbs,
                needed_by,
                without,
                remedy,
                "The process lacks a right that it can do without"
            );
        }
    }
}

/// Joins the verbs of each object. Those that the process can do without are apart.
fn missing<'a>(reviews: &Reviews<'a>) -> Vec<MissingRights<'a>> {
    let mut joined = BTreeMap::<_, MissingRights<'a>>::new();
    for (needed, _) in reviews.all().filter(|(_, answer)| *answer == Some(false)) {
        let Right { namespace, object, .. } = &needed.right;
        joined.entry((needed.without.clone(), namespace, object)).or_default().push(needed);
    }
    joined.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubernetes_versions_outside_of_the_supported_range_are_named() {
        for supported in ["v1.32.0", "v1.36.3-gke.1", "v1.37.9+k3s1"] {
            assert_eq!(unsupported(supported), None, "{supported}");
        }
        for other in ["v1.31.14", "v1.38.0", "v2.0.0", "", "unknown"] {
            assert_eq!(unsupported(other).unwrap(), "the program supports Kubernetes 1.32 to 1.37", "{other}");
        }
    }
}
