//! Connections that do not come about: a server, or what leads to it, that takes a connection and then says nothing.
//!
//! A request that is given up takes its connection along. But where another connection becomes free first, the HTTP client
//! leaves the one it has begun to a task of its own, and that would wait for ever.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::Uri;
use tower::{BoxError, Service};

/// For names, TCP, the proxy and TLS together. More than the proxy has for its part, whose error says more; less than the
/// 30 s that most requests have.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Makes another connector give up after [`TIMEOUT`].
#[derive(Clone)]
pub(crate) struct InTime<C>(pub(super) C);

impl<C> Service<Uri> for InTime<C>
where
    C: Service<Uri, Error = BoxError>,
    C::Future: Send + 'static,
{
    type Response = C::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<C::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let connecting = self.0.call(server);
        Box::pin(async move {
            let connected = tokio::time::timeout(TIMEOUT, connecting).await;
            connected.unwrap_or_else(|_| Err("the connection takes too long, TLS included".into()))
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;
    use tower::service_fn;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn connection_that_takes_too_long_is_given_up() {
        let start = Instant::now();
        let mut connector = InTime(service_fn(|_: Uri| std::future::pending::<Result<(), BoxError>>()));

        let error = connector.call(Uri::from_static("https://a")).await.unwrap_err();

        assert_eq!(error.to_string(), "the connection takes too long, TLS included");
        assert_eq!(start.elapsed().as_secs(), 20);
    }
}
