//! Gives up connections that do not come about: a server or proxy that accepts a connection and then stays silent. A
//! cancelled request cancels its connection attempt. But if another connection becomes free first, the HTTP client
//! moves the attempt to a background task, which would wait for ever.

use std::time::Duration;

use tower::BoxError;

/// For DNS, TCP, the proxy and TLS. Above the proxy's own timeout, whose error says more; below most requests' 30 s.
const TIMEOUT: Duration = Duration::from_secs(20);

pub(super) async fn in_time<T>(connecting: impl Future<Output = Result<T, BoxError>>) -> Result<T, BoxError> {
    let connected = tokio::time::timeout(TIMEOUT, connecting).await;
    connected.unwrap_or_else(|_| Err("the connection takes too long, TLS included".into()))
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn connection_that_takes_too_long_is_given_up() {
        let start = Instant::now();

        let error = in_time(std::future::pending::<Result<(), BoxError>>()).await.unwrap_err();

        assert_eq!(error.to_string(), "the connection takes too long, TLS included");
        assert_eq!(start.elapsed().as_secs(), 20);
    }
}
