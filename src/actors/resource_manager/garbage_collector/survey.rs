//! The reads of a run: candidates and the references to them. Candidates are listed first, so that a reference made in
//! between is seen. If one list fails, nothing is deleted (spec 33 T5, T6).

use cluster::{ApiError, Cluster, Context, ListQuery, Resource, Serving};
use jiff::Timestamp;
use serde_json::Value;

use super::{
    candidates::{Candidates, CollectableKind, selector},
    references::{self, HOLDERS, list_kind},
};

/// Why a run ends early (spec 33 §4.1, §4.2, T9).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SurveyError {
    /// Candidates could not be listed.
    #[error("failed listing {0}: {1}")]
    Candidates(String, ApiError),
    /// A kind that may refer to candidates could not be listed.
    #[error("failed listing objects of gvk {0}: {1}")]
    Holders(String, ApiError),
    /// A kind that may refer to candidates could not be watched.
    #[error("failed watching objects of gvk {0}: {1}")]
    Watch(String, ApiError),
    /// The time is over; the number is the candidates left in the namespace.
    #[error("the run has reached its time limit; {0} objects of this namespace are left for the next run")]
    OutOfTime(usize),
}

/// Where to watch a kind from: the version of its last list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The listed resource.
    pub resource: Resource,
    /// The listed namespace; `None` means all.
    pub scope: Option<String>,
    /// The resource version of the list.
    pub version: String,
}

/// Reads one cluster, in the namespaces of its configuration.
pub struct Survey<'a> {
    cluster: &'a Cluster,
    context: &'a Context,
}

impl<'a> Survey<'a> {
    /// Creates a survey of this cluster.
    pub fn new(cluster: &'a Cluster, context: &'a Context) -> Self {
        Self { cluster, context }
    }

    /// Lists the collectable objects; fails if a list fails.
    pub async fn candidates(&self, now: Timestamp) -> Result<Candidates, SurveyError> {
        let mut candidates = Candidates::default();
        for kind in CollectableKind::ALL {
            let query = ListQuery { metadata_only: true, ..ListQuery::labelled(selector()) };
            for scope in self.scopes() {
                let resource = kind.resource();
                let listed = self.each(&resource, scope, &query, |object| candidates.add(kind, object, now)).await;
                listed.map_err(|error| SurveyError::Candidates(resource.plural.to_string(), error))?;
            }
        }
        Ok(candidates)
    }

    /// Removes referenced candidates, in one namespace or all, until none is left. Returns from where to watch for new
    /// references. Fails if a kind that may refer to them cannot be listed, unless discovery says it is absent.
    pub async fn take_out_referenced(
        &self,
        candidates: &mut Candidates,
        namespace: Option<&str>,
    ) -> Result<Vec<Position>, SurveyError> {
        let scopes = namespace.map_or_else(|| self.scopes(), |namespace| vec![Some(namespace.to_owned())]);
        let (mut positions, mut doubtful, mut asked) = (Vec::new(), Vec::new(), 0);
        for holder in HOLDERS {
            match self.take_out(candidates, &holder, &scopes, &mut positions).await {
                Ok(()) => {}
                Err(error) if may_be_absence(&error) => {
                    asked = self.cluster.discovery().asked();
                    doubtful.push((holder, error));
                }
                Err(error) => return Err(failed(&holder, error)),
            }
        }
        // A list answered with 404 or 403 does not prove that the kind is not served.
        for (holder, error) in doubtful {
            if candidates.known.is_empty() {
                return Ok(Vec::new());
            }
            let kind = holder.group_version_kind();
            let serving = self.cluster.discovery().look_up(&kind, asked).await;
            match serving.map_err(|unknown| failed(&holder, unknown))? {
                Serving::Absent(_) => {}
                Serving::Served(other) if other.version != holder.version => {
                    let listed = self.take_out(candidates, &other, &scopes, &mut positions).await;
                    listed.map_err(|error| failed(&other, error))?;
                }
                Serving::Served(_) => return Err(failed(&holder, error)),
            }
        }
        Ok(if candidates.known.is_empty() { Vec::new() } else { positions })
    }

    async fn take_out(
        &self,
        candidates: &mut Candidates,
        holder: &Resource,
        scopes: &[Option<String>],
        positions: &mut Vec<Position>,
    ) -> Result<(), ApiError> {
        for scope in scopes {
            if candidates.known.is_empty() {
                return Ok(());
            }
            let query = ListQuery { metadata_only: true, ..ListQuery::default() };
            let take_out = |object: &Value| {
                candidates.take_out(references::identities(object));
            };
            let version = self.each(holder, scope.clone(), &query, take_out).await?;
            positions.push(Position { resource: holder.clone(), scope: scope.clone(), version });
        }
        Ok(())
    }

    async fn each(
        &self,
        resource: &Resource,
        scope: Option<String>,
        query: &ListQuery,
        mut take: impl FnMut(&Value),
    ) -> Result<String, ApiError> {
        let mut pages = self.cluster.pages(self.context.clone(), resource.clone(), scope, query.clone());
        let mut version = String::new();
        while let Some(page) = pages.next().await {
            let page = page?;
            page.items.iter().for_each(&mut take);
            version = page.resource_version;
        }
        Ok(version)
    }

    fn scopes(&self) -> Vec<Option<String>> {
        let namespaces = &self.cluster.options().namespaces;
        if namespaces.is_empty() { vec![None] } else { namespaces.iter().cloned().map(Some).collect() }
    }
}

impl SurveyError {
    pub(super) fn watching(holder: &Resource, error: ApiError) -> Self {
        Self::Watch(list_kind(&holder.group_version_kind()), error)
    }
}

/// Authorization precedes routing: without a role for `*`, a kind that is not served is answered with 403.
fn may_be_absence(error: &ApiError) -> bool {
    error.is_not_served() || error.is_not_found() || error.is_forbidden()
}

fn failed(holder: &Resource, error: ApiError) -> SurveyError {
    SurveyError::Holders(list_kind(&holder.group_version_kind()), error)
}
