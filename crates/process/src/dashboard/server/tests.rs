use std::sync::{
    atomic::{AtomicUsize, Ordering},
    mpsc,
};

use actix_web::test;
use jiff::Timestamp;
use kit::Role;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::*;
use crate::figures::Figures;

fn sources() -> Arc<Sources> {
    let status_registry = StatusRegistry::default();
    status_registry.enter("managedresource", Role::Supervisor);
    Arc::new(Sources {
        liveness: Checks::with_ping(),
        readiness: Checks::default().with("webhook-server", Arc::new(|| Err("not started".to_owned()))),
        metrics: Metrics::new(crate::metrics::testing::PROGRAM, &[], "v1", status_registry.clone()),
        status_registry,
        leadership: Arc::new(|| Leadership::Leading),
        leader: Arc::new(|| None),
        figures: Arc::new(|_| Figures::default()),
        config: "".into(),
        now: Arc::new(|| Timestamp::UNIX_EPOCH),
    })
}

fn process() -> ProcessInfo {
    ProcessInfo {
        name: "gardener-resource-manager".to_owned(),
        version: "v1".to_owned(),
        host: "pod-0".to_owned(),
        started: Timestamp::UNIX_EPOCH,
    }
}

fn dashboard(sources: &Sources, streams: usize) -> web::Data<Dashboard> {
    web::Data::new(Dashboard {
        feed: Arc::new(Feed::new(sources.shown(process()))),
        streams: Streams::within(streams, CancellationToken::new()),
    })
}

async fn get(path: &str) -> (u16, String, String) {
    let sources = sources();
    let app = App::new()
        .app_data(dashboard(&sources, 1))
        .app_data(web::Data::from(sources))
        .configure(probe_routes)
        .configure(metrics_routes)
        .default_service(web::to(not_found));
    let service = test::init_service(app).await;

    let response = test::call_service(&service, test::TestRequest::get().uri(path).to_request()).await;

    let content_type = response.headers().get(header::CONTENT_TYPE);
    let content_type = content_type.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
    let status = response.status().as_u16();
    let body = test::read_body(response).await;
    (status, content_type, String::from_utf8(body.to_vec()).unwrap())
}

/// spec 70 §6
#[actix_web::test]
async fn probes_answer_on_their_paths() {
    let table = [
        ("/healthz", 200, "ok"),
        ("/healthz/", 200, "ok"),
        ("/healthz?verbose", 200, "[+]ping ok\nhealthz check passed\n"),
        ("/healthz/ping", 200, "ok"),
        ("/healthz/webhook-server", 404, "404 page not found\n"),
        ("/readyz", 500, "[-]webhook-server failed: reason withheld\nhealthz check failed\n"),
        ("/readyz/webhook-server", 500, "internal server error: not started"),
        ("/readyz?exclude=webhook-server", 200, "ok"),
        ("/readyz?exclude=webhook%2Dserver", 200, "ok"),
        ("/readyz/ping", 404, "404 page not found\n"),
        ("/livez", 404, "404 page not found\n"),
    ];

    for (path, status, body) in table {
        let expected = (status, "text/plain; charset=utf-8".to_owned(), body.to_owned());
        assert_eq!(get(path).await, expected, "{path}");
    }
}

/// spec 70 §9.1
#[actix_web::test]
async fn metrics_are_prometheus_text() {
    let (status, content_type, body) = get("/metrics").await;

    assert_eq!((status, content_type.as_str()), (200, "text/plain; version=0.0.4; charset=utf-8"));
    assert!(body.contains("test_build_info{version=\"v1\"} 1\n"), "{body}");
}

/// spec 70 scenario 31, profiling disabled
#[actix_web::test]
async fn profiles_are_off_unless_they_are_enabled() {
    assert_eq!(get("/debug/pprof").await.0, 404);
    assert_eq!(get("/debug/pprof/").await.0, 404);
    assert_eq!(get("/debug/pprof/profile?seconds=1").await.0, 404);
}

#[cfg(feature = "profiling")]
const MEASURED: [(&str, &str, &str); 5] = [
    ("/debug/pprof/symbol?0x0", "200", "num_symbols: 1"),
    ("/debug/pprof/allocator", "200", "allocated"),
    ("/debug/pprof/profile?seconds=1", "200", "content-type: application/octet-stream"),
    ("/debug/pprof/profile?seconds=x", "400", "seconds must be a whole number from 1 to 600"),
    ("/debug/pprof/heap", "404", "the allocator takes no samples"),
];
#[cfg(not(feature = "profiling"))]
const MEASURED: [(&str, &str, &str); 2] = [
    ("/debug/pprof/profile?seconds=1", "501", "build it with --features profiling"),
    ("/debug/pprof/heap", "501", "build it with --features profiling"),
];

/// spec 70 scenario 31, profiling enabled; §9.3
#[actix_web::test]
async fn profiles_are_below_debug_pprof_of_the_metrics_server() {
    let any = ListenAddress { host: String::new(), port: 0 };
    let options = ServerOptions {
        probes: Some(any.clone()),
        metrics: Some(any),
        profiling: true,
        process: process(),
        descriptors: Descriptors::default(),
    };
    let servers = serve(options, sources()).unwrap();
    let ask = async |address: Option<SocketAddr>, path: &str| {
        let mut answer = Vec::new();
        connect(address.unwrap(), path).await.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    };

    for (path, status, contained) in [
        ("/debug/pprof", "302", "location: /debug/pprof/"),
        ("/debug/pprof/", "200", "profile?seconds=30"),
        ("/debug/pprof/actors", "200", "Starting      managedresource"),
        ("/debug/pprof/goroutine?debug=1", "200", "actors: 1"),
        ("/debug/pprof/trace?seconds=1", "404", "OTEL_EXPORTER_OTLP_ENDPOINT"),
        ("/debug/pprof/mutex", "404", "404 page not found"),
    ]
    .into_iter()
    .chain(MEASURED)
    {
        let answer = ask(servers.metrics_address(), path).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {answer}");
        assert!(answer.contains(contained), "{path}: {answer}");
    }
    let answer = ask(servers.probes_address(), "/debug/pprof/").await;
    assert!(answer.starts_with("HTTP/1.1 404 "), "never on the probes' port: {answer}");
    servers.stop().await;
}

#[actix_web::test]
async fn dashboard_serves_its_files_and_the_status_registry() {
    let table = [
        ("/dashboard", "text/html; charset=utf-8"),
        ("/dashboard/app.js", "text/javascript; charset=utf-8"),
        ("/dashboard/style.css", "text/css; charset=utf-8"),
        ("/dashboard/views.css", "text/css; charset=utf-8"),
        ("/dashboard/icon.svg", "image/svg+xml"),
        ("/dashboard/actors", "application/json"),
        ("/dashboard/details?path=managedresource", "application/json"),
    ];
    for (path, content_type) in table {
        let (status, actual, body) = get(path).await;
        assert_eq!((status, actual.as_str()), (200, content_type), "{path}");
        assert!(!body.is_empty(), "{path}");
    }
    assert_eq!(get("/dashboard/").await.0, 307);
    assert_eq!(get("/dashboard/other").await.0, 404);
}

#[actix_web::test]
async fn dashboard_details_name_what_is_wrong() {
    for (path, text) in [
        (
            "/dashboard/details?path=managedresource%2Fns%2Fa",
            r#"{"error":"there is no actor \"managedresource/ns/a\""}"#,
        ),
        ("/dashboard/details", r#"{"error":"there is no actor \"\""}"#),
    ] {
        assert_eq!(get(path).await, (404, "application/json".to_owned(), text.to_owned()));
    }
    let (_, _, body) = get("/dashboard/details?path=managedresource").await;
    let expected = serde_json::json!({
        "now": "1970-01-01T00:00:00Z", "row": {"path": "managedresource", "role": "supervisor", "activity": "starting"},
        "details": [], "reconciles": [], "pending": [],
    });
    assert_eq!(serde_json::from_str::<serde_json::Value>(&body).unwrap(), expected);
}

#[actix_web::test]
async fn dashboard_data_have_the_headers_of_the_page() {
    let sources = sources();
    let service = test::init_service(App::new().app_data(dashboard(&sources, 1)).configure(metrics_routes)).await;
    for path in ["", "/app.js", "/actors", "/details?path=x", "/events"] {
        let request = test::TestRequest::get().uri(&format!("/dashboard{path}")).to_request();
        let response = test::call_service(&service, request).await;
        let header = |name| response.headers().get(name).map(|value| value.to_str().unwrap());
        assert_eq!(header(header::CONTENT_SECURITY_POLICY), Some(PAGE_POLICY), "{path}");
        assert_eq!(header(header::REFERRER_POLICY), Some("no-referrer"), "{path}");
        assert_eq!(header(header::X_CONTENT_TYPE_OPTIONS), Some("nosniff"), "{path}");
        assert_eq!(header(header::CACHE_CONTROL), Some("no-cache"), "{path}");
    }
}

#[actix_web::test]
async fn dashboard_page_loads_only_its_own_files() {
    let sources = sources();
    let service = test::init_service(App::new().app_data(dashboard(&sources, 1)).configure(metrics_routes)).await;

    let response = test::call_service(&service, test::TestRequest::get().uri("/dashboard").to_request()).await;

    let policy = response.headers().get(header::CONTENT_SECURITY_POLICY).unwrap().to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    for (path, _, content) in PAGE {
        for forbidden in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "https://"] {
            assert!(!content.contains(forbidden), "{forbidden} in {path}");
        }
    }
    let page = PAGE[0].2;
    assert!(
        !page.contains("style=") && !page.contains("<style") && !page.contains("onclick"),
        "inline code is refused"
    );
}

/// A module that is missing would leave the page empty.
#[actix_web::test]
async fn dashboard_serves_each_file_that_its_page_names() {
    let mut named = Vec::new();
    for (_, _, content) in PAGE {
        named.extend(between(content, "from \"./", "\"").map(|name| format!("/{name}")));
        named.extend(between(content, "=\"dashboard/", "\"").map(|name| format!("/{name}")));
    }

    let served = |name: &str| PAGE.iter().any(|(path, ..)| *path == name) || name == "/actors";
    let missing: Vec<_> = named.iter().filter(|name| !served(name)).collect();
    let unused: Vec<_> =
        PAGE.iter().filter(|(path, ..)| !path.is_empty() && !named.iter().any(|name| name == path)).collect();

    assert!(missing.is_empty(), "{missing:?}");
    assert!(unused.is_empty(), "{unused:?}");
}

fn between<'a>(text: &'a str, begin: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(begin).skip(1).filter_map(move |rest| rest.split_once(end)).map(|(name, _)| name)
}

/// A client that opens streams without reading them does not block other clients.
#[actix_web::test]
async fn event_streams_make_room_for_new_ones() {
    let any = ListenAddress { host: "127.0.0.1".to_owned(), port: 0 };
    let options = ServerOptions {
        probes: None,
        metrics: Some(any),
        profiling: false,
        process: process(),
        descriptors: Descriptors::default(),
    };
    let servers = serve(options, sources()).unwrap();
    let address = servers.metrics_address().unwrap();
    let begin = async || {
        let mut stream = connect(address, "/dashboard/events").await;
        let mut answer = [0; 15];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200 OK", "{}", String::from_utf8_lossy(&answer));
        stream
    };

    let mut streams = Vec::new();
    for _ in 0..MAX_STREAMS + 3 {
        streams.push(begin().await);
    }

    for oldest in &mut streams[..3] {
        let end = tokio::time::timeout(Duration::from_secs(10), oldest.read_to_end(&mut Vec::new())).await;
        end.expect("the oldest make room").ok();
    }
    let mut rest = Vec::new();
    let next = tokio::time::timeout(Duration::from_millis(1), streams[3].read_to_end(&mut rest)).await;
    assert!(next.is_err(), "the others go on");
    servers.stop().await;
}

/// A foreign page whose name resolves to this address (DNS rebinding).
#[actix_web::test]
async fn dashboard_refuses_foreign_host_names() {
    let any = ListenAddress { host: "127.0.0.1".to_owned(), port: 0 };
    let options = ServerOptions {
        probes: None,
        metrics: Some(any),
        profiling: true,
        process: process(),
        descriptors: Descriptors::default(),
    };
    let servers = serve(options, sources()).unwrap();
    let address = servers.metrics_address().unwrap();
    let status = async |path: &str, host: &str| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer[9..]).into_owned()
    };

    let details = "/dashboard/details?path=managedresource";
    for path in
        ["/dashboard", "/dashboard/app.js", "/dashboard/actors", details, "/dashboard/events", "/debug/pprof/actors"]
    {
        assert_eq!(status(path, "evil.example").await, "421", "{path}");
        assert_eq!(status(path, "localhost:8080").await, "200", "{path}");
    }
    assert_eq!(status("/metrics", "evil.example").await, "200", "Prometheus may know any name");
    servers.stop().await;
}

/// The HTTP library answers pipelined requests one after the other as long as none of them waits.
#[actix_web::test]
async fn scrapes_in_one_piece_take_turns_with_other_connections() {
    const MANY: usize = 400;
    let (answered, sources) = (Arc::new(AtomicUsize::new(0)), sources());
    let (blocked, is_blocked) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel();
    let (counted, goes_on) = (answered.clone(), std::sync::Mutex::new(goes_on));
    // The first request keeps the server's thread busy until the other connection has asked, too.
    let count = move || -> Result<(), String> {
        if counted.fetch_add(1, Ordering::SeqCst) == 0 {
            blocked.send(()).unwrap();
            goes_on.lock().unwrap().recv().unwrap();
        }
        Ok(())
    };
    // Each pipelined request counts first. A call without a count belongs to the other connection.
    let (calls, counted, went_first) = (AtomicUsize::new(0), answered.clone(), Arc::new(AtomicUsize::new(MANY)));
    let noted = went_first.clone();
    let turn = move || -> Result<(), String> {
        let before = counted.load(Ordering::SeqCst);
        if calls.fetch_add(1, Ordering::SeqCst) >= before {
            noted.store(before, Ordering::SeqCst);
            calls.fetch_sub(1, Ordering::SeqCst);
        }
        Ok(())
    };
    let liveness = Checks::with_ping().with("count", Arc::new(count)).with("turn", Arc::new(turn));
    let any = ListenAddress { host: "127.0.0.1".to_owned(), port: 0 };
    let options = ServerOptions {
        probes: Some(any),
        metrics: None,
        profiling: false,
        process: process(),
        descriptors: Descriptors::default(),
    };
    let servers = serve(options, Arc::new(Sources { liveness, ..(*sources).clone() })).unwrap();
    let address = servers.probes_address().unwrap();
    let ask = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n");
    let mut other = TcpStream::connect(address).await.unwrap();
    other.write_all(ask("/healthz/ping").as_bytes()).await.unwrap();
    read_answer(&mut other).await;

    let mut pipeline = TcpStream::connect(address).await.unwrap();
    pipeline.write_all(ask("/healthz").repeat(MANY).as_bytes()).await.unwrap();
    actix_web::web::block(move || is_blocked.recv().unwrap()).await.unwrap();
    other.write_all(ask("/healthz/turn").as_bytes()).await.unwrap();
    go_on.send(()).unwrap();
    read_answer(&mut other).await;

    let before = went_first.load(Ordering::SeqCst);
    assert!(before < MANY / 2, "{before} of {MANY} went first");
    servers.stop().await;
}

/// spec 70 §11
#[actix_web::test]
async fn head_limits_hold_after_a_probe_with_an_unread_body() {
    let any = ListenAddress { host: "127.0.0.1".to_owned(), port: 0 };
    let options = ServerOptions {
        probes: Some(any),
        metrics: None,
        profiling: false,
        process: process(),
        descriptors: Descriptors::default(),
    };
    let servers = serve(options, sources()).unwrap();
    let address = servers.probes_address().unwrap();

    for (body, end) in [
        ("content-length: 0\r\n\r\n", "HTTP/1.1 431 Request Header Fields Too Large"),
        ("transfer-encoding: chunked\r\n\r\n0\r\n\r\n", ""),
        ("transfer-encoding: chunked\r\n\r\n", ""),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("GET /healthz HTTP/1.1\r\nhost: a\r\n{body}").as_bytes()).await.unwrap();
        read_answer(&mut stream).await;
        if !end.is_empty() {
            stream.write_all(format!("GET /{}", "a".repeat(17 << 10)).as_bytes()).await.unwrap();
        }
        let mut last = String::new();
        timeout(Duration::from_secs(30), stream.read_to_string(&mut last)).await.expect("it is closed").unwrap();
        assert_eq!(last.lines().next().unwrap_or_default(), end, "{body:?}");
    }
    servers.stop().await;
}

async fn read_answer(stream: &mut TcpStream) {
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\nok") {
        answer.push(stream.read_u8().await.unwrap());
    }
    assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"), "{}", String::from_utf8_lossy(&answer));
}

async fn connect(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", address.port())).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

#[actix_web::test]
async fn servers_answer_on_their_sockets_and_stop_with_open_streams() {
    let any = ListenAddress { host: String::new(), port: 0 };
    let options = ServerOptions {
        probes: Some(any.clone()),
        metrics: Some(any),
        profiling: false,
        process: process(),
        descriptors: Descriptors::default(),
    };
    let handles = serve(options, sources()).unwrap();

    let mut probe = String::new();
    connect(handles.probes_address().unwrap(), "/healthz").await.read_to_string(&mut probe).await.unwrap();
    let mut stream = connect(handles.metrics_address().unwrap(), "/dashboard/events").await;
    let mut events = Vec::new();
    while !events.ends_with(b"}\n\n\r\n") {
        events.push(stream.read_u8().await.unwrap());
    }
    handles.stop().await;
    stream.read_to_end(&mut events).await.unwrap();

    assert!(probe.starts_with("HTTP/1.1 200 OK\r\n"), "{probe}");
    assert!(probe.contains("\r\nx-content-type-options: nosniff\r\n"), "{probe}");
    assert!(probe.ends_with("\r\n\r\nok"), "{probe}");
    let events = String::from_utf8(events).unwrap();
    assert!(events.contains("event: snapshot\ndata: {"), "{events}");
    assert!(events.ends_with("0\r\n\r\n"), "the stream ends properly: {events}");
}

#[actix_web::test]
async fn listen_error_names_the_taken_address() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let bind = |port| ListenAddress { host: "127.0.0.1".to_owned(), port };

    let error = serve(
        ServerOptions {
            probes: Some(bind(0)),
            metrics: Some(bind(port.into())),
            profiling: false,
            process: process(),
            descriptors: Descriptors::default(),
        },
        sources(),
    )
    .err()
    .unwrap();

    assert!(error.to_string().starts_with(&format!("error listening on 127.0.0.1:{port}: ")), "{error}");
}

/// As a port scanner or an attacker does.
#[actix_web::test]
async fn silent_connections_make_room_for_probes() {
    let any = ListenAddress { host: "127.0.0.1".to_owned(), port: 0 };
    let handles = serve(
        ServerOptions {
            probes: Some(any),
            metrics: None,
            profiling: false,
            process: process(),
            descriptors: Descriptors::default(),
        },
        sources(),
    )
    .unwrap();
    let address = handles.probes_address().unwrap();
    let mut silent = Vec::new();
    for index in 0..Descriptors::default().plain().silent + 10 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let begin: &[u8] = if index % 2 == 0 { b"GET /healthz HTTP/1.1\r\n" } else { b"" };
        stream.write_all(begin).await.unwrap();
        silent.push(stream);
    }

    let mut probe = String::new();
    connect(address, "/healthz").await.read_to_string(&mut probe).await.unwrap();

    assert!(probe.starts_with("HTTP/1.1 200 OK\r\n"), "{probe}");
    for stream in &mut silent[..10] {
        let closed = tokio::time::timeout(Duration::from_secs(10), stream.read_u8()).await;
        assert!(closed.expect("the oldest are closed").is_err());
    }
    let last = silent.last_mut().unwrap();
    last.write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    last.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "the youngest stays: {answer}");
    handles.stop().await;
}
