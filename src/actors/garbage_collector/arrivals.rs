//! References that are made while a run deletes (spec 33 T9).
//!
//! Deletions take their time, and meanwhile something old may be used again. So what may refer to the candidates of a chunk is
//! watched from where the look before it ended. A watch may lag: what it brings too late is seen by the next look.

use std::time::Duration;

use cluster::{ApiError, Cluster, Context, Resource, WatchQuery, WatchStream};
use futures::{
    StreamExt as _, future,
    stream::{self, BoxStream, SelectAll},
};
use tokio::time::timeout_at;

use super::{
    candidates::Identity,
    references,
    survey::{Position, SurveyError},
};

/// So long the server is asked to keep a watch open: longer than any run.
const TIME: Duration = Duration::from_secs(900);

/// Watches of what may refer to candidates.
pub(super) struct Arrivals(SelectAll<BoxStream<'static, Result<Vec<Identity>, SurveyError>>>);

impl Arrivals {
    /// Opens a watch from each position.
    ///
    /// # Errors
    /// If one of them cannot be opened.
    pub(super) async fn open(
        cluster: &Cluster,
        context: &Context,
        positions: Vec<Position>,
    ) -> Result<Self, SurveyError> {
        let opened = future::try_join_all(positions.into_iter().map(async |position| {
            let Position { resource, scope, version } = position;
            let query = WatchQuery {
                resource_version: Some(version),
                metadata_only: true,
                timeout: Some(TIME),
                ..WatchQuery::default()
            };
            let opening = timeout_at(context.deadline.0, cluster.watch(&resource, scope.as_deref(), query)).await;
            match opening.unwrap_or(Err(ApiError::Timeout)) {
                Ok(stream) => Ok(referred_by(resource, stream)),
                Err(error) => Err(SurveyError::watching(&resource, error)),
            }
        }));
        Ok(Self(opened.await?.into_iter().collect()))
    }

    /// What an object that has come refers to, which may be nothing. `None`: nothing is watched.
    ///
    /// # Errors
    /// If a watch has ended: from then on nothing is known.
    pub(super) async fn next(&mut self) -> Option<Result<Vec<Identity>, SurveyError>> {
        self.0.next().await
    }
}

/// What the objects of a watch refer to. Its end is an error.
fn referred_by(resource: Resource, stream: WatchStream) -> BoxStream<'static, Result<Vec<Identity>, SurveyError>> {
    let ended = ApiError::Transport { message: "the watch ended".to_owned(), sent: true };
    let events = stream.chain(stream::once(future::ready(Err(ended))));
    let referred = events.map(move |event| match event {
        Ok(event) => Ok(references::identities(&event.object).collect()),
        Err(error) => Err(SurveyError::watching(&resource, error)),
    });
    referred.boxed()
}
