//! Gives up connections that do not come about: a server or proxy that accepts a connection and then stays silent. A
//! cancelled request cancels its connection attempt. But if another connection becomes free first, the HTTP client
//! moves the attempt to a background task, which would wait for ever.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::Uri;
use tower::{BoxError, Service};

/// For DNS, TCP, the proxy and TLS. Above the proxy's own timeout, whose error says more; below most requests' 30 s.
const TIMEOUT: Duration = Duration::from_secs(20);

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
