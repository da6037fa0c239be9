//! `referrers` of gardener-controller-manager: who refers to an object, by the rules of the controllers. Writes nothing.
//!
//! `object, metadata ─► lists of the kinds that may refer to it, page by page ─ actors' referrers.rs ─► rows ─► text, JSON`
//!
//! Of what is listed only names are kept. Secrets are never listed.

use std::time::Duration;

use cluster::{ApiError, Cluster, Context, ListQuery, Resource, Serving, object, object::NamespacedName};
use jiff::Timestamp;
use kit::{Clock, Deadline, Priority, Random};
use process::Program as _;
use serde_json::{Value, json};

use super::{
    DIFFERENT, OK, Said,
    colours::{GREEN, PLAIN, YELLOW},
    columns::{Cell, lines, plain, styled},
    connect, report,
    screen::Content,
    selection,
};
use crate::{
    actors::controller_manager::referrers::{ReferrerList, Use, lists},
    api::meta::age::age,
    cli::controller_manager::ReferrersOptions,
    jsonpath::TooMuch,
    programs::controller_manager::ControllerManager,
};

/// All requests together.
const TIME: Duration = Duration::from_secs(300);
/// How often a list is started again if it expires while it is read.
const MOST_LISTS: u32 = 3;

/// Why it is not known who refers to an object.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReferrersError {
    #[error("cannot read {object}: {source}")]
    Read { object: String, source: ApiError },
    #[error("cannot list {plural}: {source} — it is not known who refers to {object}")]
    List { plural: String, object: String, source: ApiError },
    #[error(
        "the cluster does not serve {0} — it is no garden, or its gardener-apiserver is not registered; name another \
         cluster with --kubeconfig or --context"
    )]
    NotServed(String),
    #[error(transparent)]
    Report(#[from] TooMuch),
}

/// The object, and who refers to it.
struct Found {
    kind: &'static Resource,
    name: NamespacedName,
    /// Its metadata; `None` if it does not exist.
    object: Option<Value>,
    referrers: Vec<Referrer>,
}

struct Referrer {
    kind: &'static Resource,
    name: NamespacedName,
    state: Use,
    keeps: Option<&'static str>,
}

struct Question<'a> {
    cluster: &'a Cluster,
    context: Context,
    /// Kind and name, for errors.
    object: String,
}

/// Shows who refers to an object. The exit code is 1 if it does not exist.
pub(super) async fn referrers(
    client: kube::Client,
    (clock, random): (Clock, Random),
    options: &ReferrersOptions,
    colours: bool,
) -> Result<Said, ReferrersError> {
    let kind = options.kind.resource();
    let default = options.namespace.as_deref().unwrap_or_else(|| client.default_namespace());
    let name = match kind.namespaced {
        true => selection::key(&options.name, default),
        false => NamespacedName::new("", options.name.as_str()),
    };
    let [label] = ControllerManager::CLUSTERS else { return Ok(Said::default()) };
    let cluster = connect::read_only_as(client, *label, clock, random);
    let cluster = &cluster.limited(options.connection.request_timeout.get());
    let context = Context::new(Priority::High, Deadline::after(TIME), "referrers");
    let question = Question { cluster, context, object: format!("{} {name}", kind.kind) };
    let object = question.object(kind, &name).await?;
    let referrers = question.referrers(&lists(kind, &name)).await?;
    let found = Found { kind, name, object, referrers };
    let (out, content) = match &options.report.output {
        Some(format) => (report::whole(&found.json(), format)?, Content::Data),
        None => (found.text(cluster.clock().wall(), colours), Content::Painted),
    };
    let code = if found.object.is_some() { OK } else { DIFFERENT };
    Ok(Said { out, content, remarks: found.remarks(), code })
}

impl Question<'_> {
    /// Reads the metadata of the object.
    async fn object(&self, kind: &Resource, name: &NamespacedName) -> Result<Option<Value>, ReferrersError> {
        match self.cluster.metadata_only().find(&self.context, &kind.named(name)).await {
            Ok(object) => Ok(object),
            Err(error) if self.is_absent(kind, &error).await => Err(ReferrersError::NotServed(called(kind))),
            Err(source) => Err(ReferrersError::Read { object: self.object.clone(), source }),
        }
    }

    /// A kind that is not served has no objects. If the cluster serves none of the kinds, it is no garden.
    async fn referrers(&self, lists: &[ReferrerList]) -> Result<Vec<Referrer>, ReferrersError> {
        let (mut all, mut is_served) = (Vec::new(), false);
        for list in lists {
            if let Some(referrers) = self.listed(list).await? {
                all.extend(referrers);
                is_served = true;
            }
        }
        match lists.first() {
            Some(first) if !is_served => Err(ReferrersError::NotServed(called(first.kind))),
            Some(_) | None => Ok(all),
        }
    }

    /// Returns the referrers of one kind; `None` if the kind is not served.
    async fn listed(&self, list: &ReferrerList) -> Result<Option<Vec<Referrer>>, ReferrersError> {
        let pages = || {
            self.cluster.pages(self.context.clone(), list.kind.clone(), list.namespace.clone(), ListQuery::default())
        };
        let (mut referrers, mut begun, mut reading) = (Vec::new(), 1, pages());
        while let Some(page) = reading.next().await {
            match page {
                Ok(page) => referrers.extend(page.items.iter().filter_map(|listed| Referrer::of(list, listed))),
                Err(error) if error.is_expired() && begun < MOST_LISTS => {
                    begun += 1;
                    referrers.clear();
                    reading = pages();
                }
                Err(error) if self.is_absent(list.kind, &error).await => return Ok(None),
                Err(source) => {
                    let (plural, object) = (called(list.kind), self.object.clone());
                    return Err(ReferrersError::List { plural, object, source });
                }
            }
        }
        referrers.sort_by(|one: &Referrer, other| one.name.cmp(&other.name));
        Ok(Some(referrers))
    }

    /// Asks discovery whether a request failed because the kind is not served: the answer alone does not show it.
    async fn is_absent(&self, kind: &Resource, error: &ApiError) -> bool {
        let look_up = async || self.cluster.discovery().look_up(&kind.group_version_kind(), 0).await;
        error.is_not_served() && matches!(look_up().await, Ok(Serving::Absent(_)))
    }
}

/// Returns a kind as in RBAC rules and commands: `shoots.core.gardener.cloud`.
fn called(kind: &Resource) -> String {
    if kind.group.is_empty() { kind.plural.to_string() } else { format!("{}.{}", kind.plural, kind.group) }
}

impl Referrer {
    fn of(list: &ReferrerList, listed: &Value) -> Option<Self> {
        let state = list.judge(listed)?;
        Some(Self { kind: list.kind, name: NamespacedName::of(listed), state, keeps: list.finalizer })
    }

    fn row(&self) -> Vec<Cell> {
        let (state, style) = match self.state {
            Use::InUse => ("in use", GREEN),
            Use::InDeletion => ("in deletion", YELLOW),
            Use::Finished => ("finished", PLAIN),
        };
        let keeps = self.keeps.filter(|_| self.state != Use::Finished).unwrap_or("-");
        let NamespacedName { namespace, name } = &self.name;
        vec![plain(&*self.kind.kind), plain(namespace), plain(name), styled(state, style), plain(keeps)]
    }

    fn json(&self) -> Value {
        let state = match self.state {
            Use::InUse => "inUse",
            Use::InDeletion => "inDeletion",
            Use::Finished => "finished",
        };
        let NamespacedName { namespace, name } = &self.name;
        json!({
            "apiVersion": self.kind.api_version(), "kind": &*self.kind.kind,
            "namespace": Some(namespace).filter(|namespace| !namespace.is_empty()), "name": name,
            "state": state, "keeps": self.keeps.filter(|_| self.state != Use::Finished),
        })
    }
}

impl Found {
    fn finalizers(&self) -> Vec<&str> {
        self.object.iter().flat_map(object::finalizers).collect()
    }

    fn deletion(&self) -> Option<&str> {
        self.object.as_ref().and_then(object::deletion_timestamp)
    }

    fn text(&self, now: Timestamp, colours: bool) -> String {
        let exists = if self.object.is_some() { "" } else { " (does not exist)" };
        let mut head = vec![("Object:", format!("{} {}{exists}", self.kind.kind, self.name))];
        if self.object.is_some() {
            let deleting = self.deletion().map(|since| format!("yes, for {}", age(since.parse().ok(), now)));
            let finalizers = self.finalizers();
            head.push(("Deleting:", deleting.unwrap_or_else(|| "no".to_owned())));
            let finalizers = if finalizers.is_empty() { "none".to_owned() } else { finalizers.join(", ") };
            head.push(("Finalizers:", finalizers));
        }
        let head: Vec<_> = head.into_iter().map(|(label, text)| vec![plain(label), plain(text)]).collect();
        let mut text = lines(&head, "", colours);
        if !self.referrers.is_empty() {
            let titles = ["KIND", "NAMESPACE", "NAME", "STATE", "KEEPS"].map(plain).to_vec();
            let rows: Vec<_> = std::iter::once(titles).chain(self.referrers.iter().map(Referrer::row)).collect();
            text.push('\n');
            text.push_str(&lines(&rows, "", colours));
        }
        text
    }

    fn json(&self) -> Value {
        let NamespacedName { namespace, name } = &self.name;
        json!({
            "object": {
                "apiVersion": self.kind.api_version(), "kind": &*self.kind.kind,
                "namespace": Some(namespace).filter(|_| self.kind.namespaced), "name": name,
                "exists": self.object.is_some(), "deletionTimestamp": self.deletion(), "finalizers": self.finalizers(),
            },
            "referrers": self.referrers.iter().map(Referrer::json).collect::<Vec<_>>(),
        })
    }

    fn remarks(&self) -> Vec<String> {
        let object = format!("{} {}", self.kind.kind, self.name);
        let nobody = self.referrers.is_empty().then(|| format!("nobody refers to {object}"));
        let missing = self.object.is_none().then(|| {
            let remedy = if self.kind.namespaced { "check name and namespace" } else { "check the name" };
            format!("error: there is no {object} — {remedy}")
        });
        nobody.into_iter().chain(missing).collect()
    }
}
