use super::label::ClusterLabel;

/// Observes each HTTP exchange and the request scheduler. Called on the thread of the cluster; must return at once.
pub trait RequestObserver {
    /// An exchange ended: with a status code, or without an answer (`None`, shown as `<error>`; spec 70 §9.2
    /// `rest_client_requests_total`). `host` is `host:port` of the API server. Repeated requests count each time.
    fn finished(&self, method: &str, host: &str, code: Option<u16>);

    /// The request scheduler changed: waiting requests of high and of low priority, and writes in flight.
    fn request_scheduler(&self, cluster: ClusterLabel, high: usize, low: usize, writes_in_flight: usize);

    /// An Event was dropped because the recorder's queue was full.
    fn event_dropped(&self) {}
}

/// Observes nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl RequestObserver for NoObserver {
    fn finished(&self, _: &str, _: &str, _: Option<u16>) {}

    fn request_scheduler(&self, _: ClusterLabel, _: usize, _: usize, _: usize) {}
}
