//! References that are made while a run deletes (spec 33 T9).
//!
//! Thousands of deletions take their time, and meanwhile something old may be used again. So all that may refer to a candidate
//! is watched from where its list ended, and what has come is taken out before the next deletion is sent. A watch may lag, so
//! lists go on to be the proof: what it brings too late for one chunk is seen by the look before the next one.

use std::time::Duration;

use cluster::{ApiError, Cluster, Resource, WatchQuery, WatchStream};
use futures::{
    FutureExt as _, StreamExt as _, future,
    stream::{self, BoxStream, SelectAll},
};

use super::{
    candidates::{Candidates, Identity},
    references,
    survey::SurveyError,
};

/// So long the server is asked to keep a watch open: longer than any run.
const TIME: Duration = Duration::from_secs(900);

/// Where the list of a kind that may refer to candidates ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// What was listed.
    pub resource: Resource,
    /// In this namespace; `None`: in all.
    pub scope: Option<String>,
    /// The version of the list.
    pub version: String,
}

/// Watches of all kinds that may refer to candidates.
pub(super) struct Arrivals(SelectAll<BoxStream<'static, Result<Vec<Identity>, SurveyError>>>);

// === impl Arrivals ===

impl Arrivals {
    /// Opens a watch from each position.
    ///
    /// # Errors
    /// If one of them cannot be opened.
    pub(super) async fn open(cluster: &Cluster, positions: Vec<Position>) -> Result<Self, SurveyError> {
        let opened = future::try_join_all(positions.into_iter().map(async |position| {
            let query = WatchQuery {
                resource_version: Some(position.version),
                metadata_only: true,
                timeout: Some(TIME),
                ..WatchQuery::default()
            };
            let stream = cluster.watch(&position.resource, position.scope.as_deref(), query).await;
            stream
                .map(|stream| events(position.resource.clone(), stream))
                .map_err(|error| SurveyError::watching(&position.resource, error))
        }));
        Ok(Self(opened.await?.into_iter().collect()))
    }

    /// Takes out of the candidates what somebody began to refer to, as far as that has come; gives how many these were.
    ///
    /// # Errors
    /// If a watch has ended: from then on nothing is known.
    pub(super) fn take_out(&mut self, candidates: &mut Candidates) -> Result<usize, SurveyError> {
        let mut taken = 0;
        while let Some(Some(referred)) = self.0.next().now_or_never() {
            taken += referred?.iter().filter(|found| candidates.known.remove(found).is_some()).count();
        }
        Ok(taken)
    }
}

/// What the objects of a watch refer to. Its end is an error.
fn events(resource: Resource, stream: WatchStream) -> BoxStream<'static, Result<Vec<Identity>, SurveyError>> {
    let ended = ApiError::Transport { message: "the watch ended".to_owned(), sent: true };
    let all = stream.chain(stream::once(future::ready(Err(ended))));
    let referred = all.map(move |event| match event {
        Ok(event) => Ok(references::identities(&event.object).collect()),
        Err(error) => Err(SurveyError::watching(&resource, error)),
    });
    referred.boxed()
}
