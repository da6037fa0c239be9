mod page;

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

/// Neither probes nor metrics.
fn no_servers() -> ServerOptions {
    ServerOptions {
        probes: None,
        metrics: None,
        profiling: false,
        process: process(),
        descriptors: Descriptors::default(),
    }
}

fn any_port() -> ListenAddress {
    ListenAddress { host: "127.0.0.1".to_owned(), port: 0 }
}

fn metrics_server(sources: Arc<Sources>) -> (ServerHandles, SocketAddr) {
    let servers = serve(ServerOptions { metrics: Some(any_port()), ..no_servers() }, sources).unwrap();
    let address = servers.metrics_address().unwrap();
    (servers, address)
}

fn probes_server(sources: Arc<Sources>) -> (ServerHandles, SocketAddr) {
    let servers = serve(ServerOptions { probes: Some(any_port()), ..no_servers() }, sources).unwrap();
    let address = servers.probes_address().unwrap();
    (servers, address)
}

fn dashboard(sources: &Sources, streams: usize) -> web::Data<Dashboard> {
    let streams = Streams::within(streams, CancellationToken::new());
    web::Data::new(Dashboard::new(sources.shown(process()), streams))
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
    let options =
        ServerOptions { probes: Some(any_port()), metrics: Some(any_port()), profiling: true, ..no_servers() };
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
    let (servers, address) = probes_server(Arc::new(Sources { liveness, ..(*sources).clone() }));
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
    let (servers, address) = probes_server(sources());

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
    let options = ServerOptions { probes: Some(any.clone()), metrics: Some(any), ..no_servers() };
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
async fn actors_end_with_the_connection_for_clients_of_http_1_0_which_know_no_chunks() {
    let (servers, address) = metrics_server(sources());

    for head in ["", "host: a\r\nconnection: keep-alive\r\n", "accept-encoding: gzip, br\r\n"] {
        let mut stream = TcpStream::connect(("127.0.0.1", address.port())).await.unwrap();
        let request = format!("GET /dashboard/actors HTTP/1.0\r\n{head}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();

        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(!head.contains("transfer-encoding"), "{head}");
        assert!(body.starts_with('{') && body.ends_with("]}"), "{body}");
    }
    servers.stop().await;
}

/// RFC 9110 §9.3.2. Load balancers and `curl --head` ask so.
#[actix_web::test]
async fn head_is_answered_as_get_without_a_body() {
    let options =
        ServerOptions { probes: Some(any_port()), metrics: Some(any_port()), profiling: true, ..no_servers() };
    let servers = serve(options, sources()).unwrap();
    let [probes, metrics] = [servers.probes_address().unwrap(), servers.metrics_address().unwrap()];

    for (address, path, status) in [
        (probes, "/healthz", 200),
        (probes, "/readyz", 500),
        (metrics, "/metrics", 200),
        (metrics, "/dashboard", 200),
        (metrics, "/dashboard/app.js", 200),
        (metrics, "/dashboard/actors", 200),
        (metrics, "/dashboard/details?path=managedresource", 200),
        (metrics, "/dashboard/details?path=other", 404),
        (metrics, "/dashboard/events", 200),
        (metrics, "/debug/pprof/", 200),
        (metrics, "/other", 404),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let rest = "HTTP/1.1\r\nhost: a\r\naccept-encoding: gzip\r\n";
        // The answer to the second request begins where the first answer ends.
        let requests = format!("HEAD {path} {rest}\r\nHEAD {path} {rest}connection: close\r\n\r\n");
        stream.write_all(requests.as_bytes()).await.unwrap();
        let mut answers = String::new();
        let read = timeout(Duration::from_secs(10), stream.read_to_string(&mut answers)).await;
        read.unwrap_or_else(|_| panic!("{path} does not end: {answers}")).unwrap();

        let heads: Vec<_> = answers.split_terminator("\r\n\r\n").collect();
        assert_eq!(heads.len(), 2, "{path}: {answers}");
        for head in heads {
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {answers}");
            assert!(head.contains("\r\ncontent-type: "), "{path}: {answers}");
        }
    }
    servers.stop().await;
}

/// The answer to HEAD is complete at once.
#[actix_web::test]
async fn head_of_a_stream_takes_no_place() {
    tokio::time::pause();
    let sources = sources();
    let service = test::init_service(App::new().app_data(dashboard(&sources, 1)).configure(metrics_routes)).await;
    let open = test::call_service(&service, test::TestRequest::get().uri("/dashboard/events").to_request()).await;
    let full = test::call_service(&service, test::TestRequest::get().uri("/dashboard/events").to_request()).await;
    assert_eq!((open.status().as_u16(), full.status().as_u16()), (200, 503));

    for path in ["/dashboard/events", "/dashboard/actors"] {
        let request = test::TestRequest::default().method(Method::HEAD).uri(path).to_request();
        let answer = test::call_service(&service, request).await;

        assert_eq!(answer.status(), 200, "{path}");
        assert!(test::read_body(answer).await.is_empty(), "{path}");
    }
}

#[actix_web::test]
async fn listen_error_names_the_taken_address() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let bind = |port| ListenAddress { host: "127.0.0.1".to_owned(), port };

    let options = ServerOptions { probes: Some(bind(0)), metrics: Some(bind(port.into())), ..no_servers() };
    let error = serve(options, sources()).err().unwrap();

    assert!(error.to_string().starts_with(&format!("error listening on 127.0.0.1:{port}: ")), "{error}");
}

/// As a port scanner or an attacker does.
#[actix_web::test]
async fn silent_connections_make_room_for_probes() {
    let (servers, address) = probes_server(sources());
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
    servers.stop().await;
}

/// spec 70 §11.1. The HTTP library takes the whole body of an answer at once, if it gets it.
#[actix_web::test]
async fn large_answers_that_are_not_read_are_bounded_together() {
    const LARGE: usize = 8 << 20;
    let large = || async { HttpResponse::Ok().body(vec![b'x'; LARGE]) };
    let routes = move |config: &mut web::ServiceConfig| {
        config.route("/large", web::get().to(large));
    };
    let server = prepare("large", any_port().listen().unwrap(), Descriptors::default().plain(), routes).unwrap().run();
    let mut clients = Vec::new();
    for _ in 0..UNREAD.bytes / LARGE * 4 {
        let mut client = connect(server.address, "/large").await;
        client.read_u8().await.unwrap();
        clients.push(client);
    }

    let mut received = Vec::new();
    for client in &mut clients {
        let mut answer = Vec::new();
        // An error: the server has closed the connection.
        client.read_to_end(&mut answer).await.ok();
        received.push(answer.len());
    }

    assert!(received[0] < LARGE, "the oldest makes room: {received:?}");
    assert!(received[clients.len() - 1] > LARGE, "the newest gets all: {received:?}");
    server.stop(Instant::now()).await;
}
