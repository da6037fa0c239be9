//! References that are made while a run deletes (spec 33 T9). Deletions take time, and an old object may get a new
//! reference meanwhile. So the kinds that may refer to a candidate are watched from the resource version of their last
//! list. A watch may lag; the next list finds what the watch missed.

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

/// Requested duration of a watch: longer than any run.
const TIME: Duration = Duration::from_secs(900);

pub(super) struct Arrivals(SelectAll<BoxStream<'static, Result<Vec<Identity>, SurveyError>>>);

impl Arrivals {
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

    /// Returns the references of the next changed object; `None` if nothing is watched. Fails if a watch ended.
    pub(super) async fn next(&mut self) -> Option<Result<Vec<Identity>, SurveyError>> {
        self.0.next().await
    }
}

fn referred_by(resource: Resource, stream: WatchStream) -> BoxStream<'static, Result<Vec<Identity>, SurveyError>> {
    let ended = ApiError::Transport { message: "the watch ended".to_owned(), sent: true };
    let events = stream.chain(stream::once(future::ready(Err(ended))));
    let referred = events.map(move |event| match event {
        Ok(event) => Ok(references::identities(&event.object).collect()),
        Err(error) => Err(SurveyError::watching(&resource, error)),
    });
    referred.boxed()
}
