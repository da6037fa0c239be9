use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use cluster::{ApiError, Cluster, Context, Resource};
use kit::{Deadline, Priority};

use super::finding::{Finding, Outcome};
use crate::{
    api::kinds::NAMESPACE,
    rights::{NeededRight, Right, RightObject, at_start::unsupported, needed_by, reviews::Reviews},
};

/// All questions to a cluster.
const TIME: Duration = Duration::from_secs(300);
/// Resources that are no kinds with objects: rights of them stand for something else.
const NO_KINDS: [&str; 2] = ["*", "signers"];
/// Reviews are answered, not stored, so that discovery does not count them.
const REVIEWS: &str = "reviews";

/// What is asked of a cluster.
pub(super) struct Asked<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) host: &'a str,
    /// Rights in all clusters.
    pub(super) needed: &'a [NeededRight],
    pub(super) necessary: Option<&'a Necessary>,
    /// Time limit of a request.
    pub(super) limit: Duration,
}

/// The kind without which the program has nothing to do in a cluster.
pub(super) struct Necessary {
    pub(super) kind: Resource,
    /// What it means that the kind is not served.
    pub(super) without: &'static str,
}

/// Asks whether the cluster answers, serves the kinds and grants the rights. If it does not answer, or rejects the credentials, that
/// is the only finding.
pub(super) async fn ask(asked: Asked<'_>) -> Vec<Finding> {
    let name = asked.cluster.options().label.as_str();
    let version = asked.cluster.git_version(Deadline::after(asked.limit)).await;
    let is_of_no_use = version.as_ref().is_err_and(|error| matches!(error.code(), None | Some(401)));
    let (outcome, detail) = match version.map(|version| (unsupported(&version), version)) {
        Ok((None, version)) => (Outcome::Good, format!("it answers; its version is {version}")),
        Ok((Some(range), version)) => (Outcome::Note, format!("it answers; its version is {version}, and {range}")),
        // No controller needs the version.
        Err(error) if matches!(error.code(), Some(403 | 404)) => {
            (Outcome::Note, format!("it answers; its version is not known: {error}"))
        }
        Err(error) => (Outcome::Missing, error.to_string()),
    };
    let mut findings = vec![Finding::new("cluster", name, asked.host, outcome).because(detail)];
    if !is_of_no_use {
        findings.extend(asked.kinds(name).await);
        findings.extend(asked.rights(name).await);
    }
    findings
}

impl Asked<'_> {
    async fn kinds(&self, name: &'static str) -> Vec<Finding> {
        let wanted: BTreeSet<(&str, &str)> = self.own(name).filter_map(kind_of).collect();
        let discovery = self.cluster.discovery();
        if let Err(error) = discovery.serving(&NAMESPACE.group_version_kind()).await {
            return vec![unknown("kind", name, &error)];
        }
        let necessary = self.necessary(name).await;
        let served = discovery.served();
        let is_other = |kind: &(&str, &str)| {
            self.necessary.is_none_or(|Necessary { kind: known, .. }| *kind != (&*known.group, &*known.plural))
        };
        let others = wanted.into_iter().filter(is_other).map(|(group, plural)| {
            let is_served = served.iter().any(|kind| &*kind.group == group && &*kind.plural == plural);
            let (outcome, detail) = match is_served {
                true => (Outcome::Good, ""),
                false => (Outcome::Note, "it is not served: what needs it waits until it is"),
            };
            Finding::new("kind", name, resource(group, plural), outcome).because(detail)
        });
        necessary.into_iter().chain(others).collect()
    }

    /// Asks for the kind in the version that the program uses.
    async fn necessary(&self, name: &'static str) -> Option<Finding> {
        let Necessary { kind, without } = self.necessary?;
        let what = resource(&kind.group, &kind.plural);
        Some(match self.cluster.discovery().mapping(&kind.group_version_kind()).await {
            Ok(_) => Finding::new("kind", name, what, Outcome::Good),
            Err(error) if error.is_no_match() => Finding::new("kind", name, what, Outcome::Missing).because(without),
            Err(error) => Finding { what, ..unknown("kind", name, &error) },
        })
    }

    async fn rights(&self, name: &'static str) -> Vec<Finding> {
        let mut reviews = Reviews::new(self.needed, name);
        let context = Context::new(Priority::High, Deadline::after(TIME), "check");
        let failed = reviews.go_on(self.cluster, &context).await.err();
        let mut joined = BTreeMap::<_, Vec<&NeededRight>>::new();
        let decided = reviews.all().filter(|(_, answer)| answer.is_some());
        for (needed, answer) in decided.chain(reviews.undecided().map(|needed| (needed, None))) {
            let Right { namespace, object, .. } = &needed.right;
            // Only a missing right needs a word about what happens without it.
            let without = needed.without.as_deref().filter(|_| answer == Some(false));
            joined.entry((namespace, object, answer, without)).or_default().push(needed);
        }
        let rows = joined.iter().map(|((_, _, answer, _), rights)| right(name, rights, *answer));
        rows.chain(failed.map(|error| unknown("right", name, &error))).collect()
    }

    fn own(&self, name: &str) -> impl Iterator<Item = &NeededRight> {
        self.needed.iter().filter(move |needed| needed.right.cluster == name)
    }
}

/// Rights on one object with the same answer; `None`: the API server answered without a decision.
fn right(name: &'static str, rights: &[&NeededRight], answer: Option<bool>) -> Finding {
    let verbs: Vec<&str> = rights.iter().map(|needed| needed.right.verb.as_str()).collect();
    let needed_by = format!("for {}", needed_by(rights));
    let (what, namespace, without, remedy) = match rights.first() {
        Some(first) => {
            let Right { object, namespace, .. } = &first.right;
            (object.to_string(), namespace.clone().unwrap_or_default(), first.without.as_deref(), first.remedy())
        }
        None => Default::default(),
    };
    let (outcome, detail) = match (answer, without) {
        (Some(true), _) => (Outcome::Good, needed_by),
        (Some(false), Some(without)) => (Outcome::Note, format!("{needed_by}; {without}. To have it, {remedy}")),
        (Some(false), None) => (Outcome::Missing, format!("{needed_by}: {remedy}")),
        (None, _) => (Outcome::Note, format!("{needed_by}; not known: the API server answers without a decision")),
    };
    let what = format!("{what}: {}", verbs.join(", "));
    Finding { namespace, ..Finding::new("right", name, what, outcome).because(detail) }
}

/// The server refuses the question, or did not answer in time.
fn unknown(topic: &'static str, name: &'static str, error: &ApiError) -> Finding {
    let outcome = if error.is_forbidden() { Outcome::Note } else { Outcome::Missing };
    Finding::new(topic, name, "*", outcome).because(format_args!("not known: {error}"))
}

fn resource(group: &str, plural: &str) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    format!("{plural}{dot}{group}")
}

fn kind_of(needed: &NeededRight) -> Option<(&str, &str)> {
    let RightObject::Resource { group, resource, .. } = &needed.right.object else { return None };
    let plural = resource.split('/').next().unwrap_or_default();
    (!NO_KINDS.contains(&plural) && !plural.ends_with(REVIEWS)).then_some((group, plural))
}

#[cfg(feature = "sim")]
#[cfg(test)]
mod tests {
    use cluster::ClusterLabel;
    use kit::{Clock, Random};
    use sim::{Fault, Seen, Sim, SimOptions};

    use super::*;
    use crate::{
        api::{config::resource_manager::Config, resources::side::Side},
        commands::connect,
        rights::programs::of_resource_manager,
    };

    /// Topic, result and detail of each finding about the source.
    async fn found(sim: &Sim, clock: Clock) -> Vec<(&'static str, Outcome, String)> {
        let label: ClusterLabel = Side::Source.label();
        let cluster = connect::read_only_as(sim.client(), label, clock, Random::seeded(1));
        let needed = of_resource_manager(&Config::default());
        let limit = Duration::from_secs(5);
        let findings = ask(Asked { cluster: &cluster, host: "sim", needed: &needed, necessary: None, limit }).await;
        findings.into_iter().map(|finding| (finding.topic, finding.outcome, finding.detail)).collect()
    }

    fn simulated() -> (Sim, Clock) {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        (Sim::new(SimOptions::new(clock.clone(), Random::seeded(1))), clock)
    }

    #[tokio::test(start_paused = true)]
    async fn check_asks_for_kinds_and_rights_although_the_version_cannot_be_read() {
        let (sim, clock) = simulated();
        sim.set_reviewer(|_| (true, String::new()));
        sim.set_faults(|info| match info.path.as_str() {
            "/version" => Fault::FailBefore(Seen::internal_error("broken")),
            _ => Fault::None,
        });

        let found = found(&sim, clock).await;

        assert_eq!((found[0].0, found[0].1), ("cluster", Outcome::Missing), "{found:#?}");
        assert!(found.iter().any(|(topic, ..)| *topic == "kind"), "{found:#?}");
        let mut rights = found.iter().filter(|(topic, ..)| *topic == "right").peekable();
        assert!(rights.peek().is_some() && rights.all(|(_, outcome, _)| *outcome == Outcome::Good), "{found:#?}");
    }

    #[tokio::test(start_paused = true)]
    async fn check_of_a_cluster_that_rejects_the_credentials_has_one_finding() {
        let (sim, clock) = simulated();
        sim.set_faults(|_| Fault::FailBefore(Seen::unauthorized()));

        let found = found(&sim, clock).await;

        assert!(matches!(found.as_slice(), [("cluster", Outcome::Missing, _)]), "{found:#?}");
    }

    #[tokio::test(start_paused = true)]
    async fn check_calls_no_right_missing_about_which_the_server_does_not_decide() {
        let (sim, clock) = simulated();
        sim.set_faults(|info| match info.resource.as_str() {
            "selfsubjectaccessreviews" => Fault::FailBefore(Seen::body(r#"{"kind": "SelfSubjectAccessReview"}"#)),
            _ => Fault::None,
        });

        let found = found(&sim, clock).await;

        let rights: Vec<_> = found.iter().filter(|(topic, ..)| *topic == "right").collect();
        let is_unknown = |(_, outcome, detail): &&(&str, Outcome, String)| {
            *outcome == Outcome::Note && detail.ends_with("not known: the API server answers without a decision")
        };
        assert!(!rights.is_empty() && rights.iter().all(is_unknown), "{found:#?}");
    }
}
