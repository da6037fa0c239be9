//! The two plain HTTP servers: probes, and metrics with the dashboard (spec 70 §6, §9, §11). Each has a worker thread
//! of its own, so neither a busy controller nor a slow scrape delays a probe.

use std::{convert::Infallible, net::SocketAddr, rc::Rc, sync::Arc, time::Duration};

use actix_web::{
    App, HttpRequest, HttpResponse,
    dev::{Service, ServiceResponse},
    http::{ConnectionType, Method, StatusCode, Version, header},
    middleware::{Compress, DefaultHeaders, from_fn},
    web,
};
use bytes::Bytes;
use futures::{Stream, future::join_all, stream::empty};
use kit::StatusRegistry;
use tokio::{task::yield_now, time::Instant};
use tokio_util::sync::CancellationToken;

pub use super::shown::{LeaderFn, Leadership, LeadershipFn, NowFn, ProcessInfo};
use super::{
    details::Details,
    feed::{Feed, actors, events},
    host,
    network::Network,
    shown::Shown,
    streams::{MAX_STREAMS, StreamPermit, Streams},
};
pub use crate::http::listen::{ListenAddress, ListenError};
use crate::{
    figures::FiguresFn,
    http::{
        answer::Exchange,
        connections::{Bounds, UNREAD},
        descriptors::Descriptors,
        listen::Listeners,
        probes::{Answer, Checks, ProbeQuery},
        route,
        server::{Prepared, Running, ServerParts},
        stream::Course,
    },
    metrics::Metrics,
    profiling,
};

/// Options of the servers.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// `server.healthProbes`; `None`: no such server.
    pub probes: Option<ListenAddress>,
    /// `server.metrics`; `None`: no such server.
    pub metrics: Option<ListenAddress>,
    /// Whether the metrics server has `/debug/pprof` (spec 70 §9.3).
    pub profiling: bool,
    /// Shown in the dashboard's header.
    pub process: ProcessInfo,
    /// Limit of open files.
    pub descriptors: Descriptors,
}

/// The data that the servers show. The servers read it and ask no actor.
#[derive(Clone)]
pub struct Sources {
    /// Checks of `/healthz`.
    pub liveness: Checks,
    /// Checks of `/readyz`.
    pub readiness: Checks,
    /// Content of `/metrics`.
    pub metrics: Metrics,
    /// Content of `/dashboard`.
    pub status_registry: StatusRegistry,
    /// Whether this process leads.
    pub leadership: LeadershipFn,
    /// Who leads.
    pub leader: LeaderFn,
    /// Figures of reconcilers, clusters and webhooks.
    pub figures: FiguresFn,
    /// The configuration in effect, without credentials.
    pub config: Arc<str>,
    /// The wall clock.
    pub now: NowFn,
}

/// The running servers.
#[must_use = "without it the servers cannot be stopped"]
pub struct ServerHandles {
    probes: Option<Running>,
    metrics: Option<Running>,
    stop_streams: CancellationToken,
}

/// Why the servers could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be bound.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The listener cannot be used.
    #[error("error starting the {server} server: {cause}")]
    Start {
        /// `probes` or `metrics`.
        server: &'static str,
        /// The system's error.
        #[source]
        cause: std::io::Error,
    },
}

/// Probes and scrapes take milliseconds, and streams end when asked to. Then connections are cut off.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
const TEXT_TYPE: &str = "text/plain; charset=utf-8";

/// Bytes that the system keeps for the client of a stream; it takes twice as many. So a client that reads slowly shows it:
/// the connection gets room again as soon as a third is read.
const SEND_BUFFER: usize = 256 << 10;

const NO_PLACE: &str = "16 pages of the dashboard are open, which is the limit; close one of them, or wait until one has been \
                        open for 15 minutes\n";
/// Seconds.
const NO_PLACE_RETRY: u64 = 5;

/// The page may load only its own files, and cannot be framed.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                           base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";

/// Path below `/dashboard`, type and content of the page's files.
const PAGE: [(&str, &str, &str); 25] = [
    ("", "text/html; charset=utf-8", include_str!("page/index.html")),
    ("/actor-details.js", JAVASCRIPT, include_str!("page/actor-details.js")),
    ("/actors-view.js", JAVASCRIPT, include_str!("page/actors-view.js")),
    ("/actors.js", JAVASCRIPT, include_str!("page/actors.js")),
    ("/app.js", JAVASCRIPT, include_str!("page/app.js")),
    ("/bundle-objects.js", JAVASCRIPT, include_str!("page/bundle-objects.js")),
    ("/bundle-view.js", JAVASCRIPT, include_str!("page/bundle-view.js")),
    ("/bundles-view.js", JAVASCRIPT, include_str!("page/bundles-view.js")),
    ("/bundles.js", JAVASCRIPT, include_str!("page/bundles.js")),
    ("/clusters-view.js", JAVASCRIPT, include_str!("page/clusters-view.js")),
    ("/connection.js", JAVASCRIPT, include_str!("page/connection.js")),
    ("/dom.js", JAVASCRIPT, include_str!("page/dom.js")),
    ("/feed.js", JAVASCRIPT, include_str!("page/feed.js")),
    ("/header.js", JAVASCRIPT, include_str!("page/header.js")),
    ("/hints.js", JAVASCRIPT, include_str!("page/hints.js")),
    ("/histogram.js", JAVASCRIPT, include_str!("page/histogram.js")),
    ("/objects.js", JAVASCRIPT, include_str!("page/objects.js")),
    ("/reconcilers.js", JAVASCRIPT, include_str!("page/reconcilers.js")),
    ("/route.js", JAVASCRIPT, include_str!("page/route.js")),
    ("/table.js", JAVASCRIPT, include_str!("page/table.js")),
    ("/text.js", JAVASCRIPT, include_str!("page/text.js")),
    ("/tools.js", JAVASCRIPT, include_str!("page/tools.js")),
    ("/style.css", CSS, include_str!("page/style.css")),
    ("/views.css", CSS, include_str!("page/views.css")),
    ("/icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
];

struct Dashboard {
    feed: Arc<Feed>,
    details: Details,
    streams: Streams,
}

/// Binds and starts the servers, inside an actix `System`, and returns at once. If it fails, no server runs.
pub fn serve(options: ServerOptions, sources: Arc<Sources>) -> Result<ServerHandles, ServeError> {
    let probes = options.probes.map(|address| address.listen()).transpose()?;
    let metrics = options.metrics.map(|address| address.listen()).transpose()?;

    let stop_streams = CancellationToken::new();
    let streams = Streams::within(MAX_STREAMS, stop_streams.clone());
    let dashboard = web::Data::new(Dashboard::new(sources.shown(options.process), streams));
    let sources = web::Data::from(sources);

    let for_metrics = sources.clone();
    let (profiled, end) = (options.profiling.then(|| sources.status_registry.clone()), stop_streams.clone());
    let metrics_routes = move |config: &mut web::ServiceConfig| {
        config.app_data(for_metrics.clone()).app_data(dashboard.clone()).configure(metrics_routes);
        if let Some(status_registry) = &profiled {
            profiling::routes(config, status_registry.clone(), end.clone());
        }
    };
    let probe_routes = move |config: &mut web::ServiceConfig| {
        config.app_data(sources.clone()).configure(probe_routes);
    };
    let bounds = options.descriptors.plain();
    let metrics = metrics.map(|listeners| prepare("metrics", listeners, bounds, metrics_routes)).transpose()?;
    let probes = probes.map(|listeners| prepare("probes", listeners, bounds, probe_routes)).transpose()?;
    Ok(ServerHandles { probes: probes.map(Prepared::run), metrics: metrics.map(Prepared::run), stop_streams })
}

impl Dashboard {
    fn new(shown: Shown, streams: Streams) -> Self {
        let feed = Arc::new(Feed::new(shown));
        Self { details: Details::new(feed.shown.clone()), feed, streams }
    }

    /// Answers with a stream, or 503 if there is no place for it. The answer to HEAD needs no place.
    fn stream<S>(
        &self,
        request: &HttpRequest,
        content_type: &str,
        pieces: impl FnOnce(StreamPermit) -> S,
    ) -> HttpResponse
    where
        S: Stream<Item = Result<Bytes, Infallible>> + 'static,
    {
        if request.method() == Method::HEAD {
            return streamed(request, content_type, empty());
        }
        match self.place(request) {
            Some(place) => streamed(request, content_type, pieces(place)),
            None => no_place(),
        }
    }

    /// Returns a place for the stream that answers a request, if there is one.
    fn place(&self, request: &HttpRequest) -> Option<StreamPermit> {
        let course = request.conn_data::<Rc<Course>>();
        if let Some(course) = course {
            course.bound_send_buffer(SEND_BUFFER);
        }
        let close = course.map(|course| course.closer());
        self.streams.begin(Network::of(request), Instant::now(), move || {
            if let Some(close) = &close {
                close();
            }
        })
    }
}

impl Sources {
    fn shown(&self, process: ProcessInfo) -> Shown {
        Shown {
            status_registry: self.status_registry.clone(),
            process,
            leadership: self.leadership.clone(),
            leader: self.leader.clone(),
            figures: self.figures.clone(),
            config: self.config.clone(),
            now: self.now.clone(),
        }
    }
}

fn prepare(
    name: &'static str,
    listeners: Listeners,
    bounds: Bounds,
    routes: impl Fn(&mut web::ServiceConfig) + Clone + Send + 'static,
) -> Result<Prepared, ServeError> {
    let server = ServerParts { name, listeners, tls: None, workers: 1, bounds, unread: UNREAD };
    let prepared = server.prepare(move || {
        let routes = routes.clone();
        move || {
            let routes = routes.clone();
            App::new()
                .wrap_fn(|mut request, service| {
                    if request.version() < Version::HTTP_11 {
                        // A compressed answer would come in chunks, which such clients do not know.
                        request.headers_mut().remove(header::ACCEPT_ENCODING);
                    }
                    let exchange = Exchange::begin(request.request());
                    let answer = service.call(request);
                    async move {
                        yield_now().await; // pipelined requests do not go before requests of other connections
                        let (request, response) = answer.await?.map_into_boxed_body().into_parts();
                        let response = match exchange {
                            Some(exchange) => exchange.end(response),
                            None => response,
                        };
                        Ok(ServiceResponse::new(request, response))
                    }
                })
                .configure(move |config| routes(config))
                .default_service(web::to(not_found))
        }
    });
    prepared.map_err(|cause| ServeError::Start { server: name, cause })
}

impl ServerHandles {
    /// Address of the probes server, if there is one.
    pub fn probes_address(&self) -> Option<SocketAddr> {
        self.probes.as_ref().map(|server| server.address)
    }

    /// Address of the metrics server, if there is one.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(|server| server.address)
    }

    /// Stops the servers: they take no new connections, end event streams, and answer the current requests.
    pub async fn stop(self) {
        self.stop_streams.cancel();
        let deadline = Instant::now() + STOP_TIMEOUT;
        let servers = self.probes.into_iter().chain(self.metrics);
        join_all(servers.map(|server| server.stop(deadline))).await;
    }
}

fn probe_routes(config: &mut web::ServiceConfig) {
    routes_of_checks(config, "/healthz", |sources| &sources.liveness);
    routes_of_checks(config, "/readyz", |sources| &sources.readiness);
}

fn routes_of_checks(config: &mut web::ServiceConfig, path: &str, checks: fn(&Sources) -> &Checks) {
    let all = move |request: HttpRequest, sources: web::Data<Sources>| async move {
        let (checks, query) = (checks(&sources), probe_query(&request));
        checks.refresh(&query).await;
        respond(checks.aggregate(&query))
    };
    let one = move |name: web::Path<String>, sources: web::Data<Sources>| async move {
        let checks = checks(&sources);
        checks.refresh_single(&name).await;
        respond(checks.single(&name))
    };
    config
        .route(path, web::to(all))
        .route(&format!("{path}/"), web::to(all))
        .route(&format!("{path}/{{check}}"), web::to(one));
}

/// Presence of `?verbose` counts, whatever its value. A query that cannot be decoded counts as none.
fn probe_query(request: &HttpRequest) -> ProbeQuery {
    let pairs = web::Query::<Vec<(String, String)>>::from_query(request.query_string());
    let local = request.peer_addr().is_some_and(|peer| peer.ip().to_canonical().is_loopback());
    let mut query = ProbeQuery { local, ..ProbeQuery::default() };
    for (key, value) in pairs.map(web::Query::into_inner).unwrap_or_default() {
        match key.as_str() {
            "verbose" => query.verbose = true,
            "exclude" => query.exclude.push(value),
            _ => {}
        }
    }
    query
}

fn respond(answer: Answer) -> HttpResponse {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    HttpResponse::build(status)
        .insert_header((header::CONTENT_TYPE, TEXT_TYPE))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .body(answer.body)
}

async fn not_found() -> HttpResponse {
    respond(Answer { status: 404, body: "404 page not found\n".to_owned() })
}

fn metrics_routes(config: &mut web::ServiceConfig) {
    config.service(web::resource("/metrics").wrap(Compress::default()).route(route::get().to(render_metrics)));

    let headers = || {
        DefaultHeaders::new()
            .add((header::CONTENT_SECURITY_POLICY, PAGE_POLICY))
            .add((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
            .add((header::REFERRER_POLICY, "no-referrer"))
            .add((header::CACHE_CONTROL, "no-cache"))
    };
    for (path, content_type, content) in PAGE {
        let file = move || async move { HttpResponse::Ok().content_type(content_type).body(content) };
        let resource = web::resource(format!("/dashboard{path}"));
        let resource = resource.wrap(headers()).wrap(Compress::default()).wrap(from_fn(host::check));
        config.service(resource.route(route::get().to(file)));
    }
    // Links of the page are relative to `/dashboard`, so that it works behind a proxy that adds a path.
    config.service(web::redirect("/dashboard/", "../dashboard"));
    let actors = web::resource("/dashboard/actors").wrap(headers()).wrap(Compress::default());
    config.service(actors.wrap(from_fn(host::check)).route(route::get().to(all_actors)));
    let details = web::resource("/dashboard/details").wrap(headers()).wrap(Compress::default());
    config.service(details.wrap(from_fn(host::check)).route(route::get().to(actor_details)));
    // Not compressed: the compressor would delay events.
    let events = web::resource("/dashboard/events").wrap(headers()).wrap(from_fn(host::check));
    config.service(events.route(route::get().to(event_stream)));
}

async fn render_metrics(sources: web::Data<Sources>) -> HttpResponse {
    HttpResponse::Ok().content_type(METRICS_TYPE).body(sources.metrics.render())
}

async fn all_actors(request: HttpRequest, dashboard: web::Data<Dashboard>) -> HttpResponse {
    dashboard.stream(&request, "application/json", |place| actors(&dashboard.feed, place))
}

async fn actor_details(request: HttpRequest, dashboard: web::Data<Dashboard>) -> HttpResponse {
    dashboard.details.answer(&request).await
}

async fn event_stream(request: HttpRequest, dashboard: web::Data<Dashboard>) -> HttpResponse {
    dashboard.stream(&request, "text/event-stream", |place| events(dashboard.feed.clone(), place))
}

/// Returns an answer that comes in pieces. Clients of HTTP/1.0, such as proxies, know no chunks: for them it ends with the
/// connection.
fn streamed(
    request: &HttpRequest,
    content_type: &str,
    pieces: impl Stream<Item = Result<Bytes, Infallible>> + 'static,
) -> HttpResponse {
    let mut answer = HttpResponse::Ok().content_type(content_type).streaming(pieces);
    if request.version() < Version::HTTP_11 {
        let head = answer.head_mut();
        head.no_chunking(true);
        head.set_connection_type(ConnectionType::Close);
    }
    answer
}

fn no_place() -> HttpResponse {
    HttpResponse::ServiceUnavailable()
        .insert_header((header::RETRY_AFTER, NO_PLACE_RETRY))
        .content_type(TEXT_TYPE)
        .body(NO_PLACE)
}

#[cfg(test)]
mod tests;
