//! The dashboard's page, data and streams.

use super::*;

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

/// A server with so many actors that an unread snapshot does not fit into the buffers of the system.
fn many_actors() -> (ServerHandles, SocketAddr, Vec<kit::Cell>) {
    let sources = sources();
    let cells: Vec<_> = (0..20_000)
        .map(|number| {
            let cell = sources.status_registry.enter(format!("managedresource/ns/{number}"), Role::Object);
            cell.update(Timestamp::UNIX_EPOCH, |state| state.line = "x".repeat(300));
            cell
        })
        .collect();
    let (servers, address) = metrics_server(sources);
    (servers, address, cells)
}

/// The status of an event stream's answer, and the connection.
async fn begin(address: SocketAddr) -> (u16, TcpStream) {
    let mut stream = connect(address, "/dashboard/events").await;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    (String::from_utf8_lossy(&answer[9..]).parse().unwrap(), stream)
}

/// Reads until the snapshot is complete.
async fn read_snapshot(stream: &mut TcpStream) -> usize {
    let (mut all, mut piece) = (Vec::new(), vec![0; 1 << 20]);
    while !all.ends_with(b"]}\n\n\r\n") {
        let bytes = stream.read(&mut piece).await.unwrap();
        assert!(bytes > 0, "the stream ended after {} bytes", all.len());
        all.extend_from_slice(&piece[..bytes]);
    }
    all.len()
}

/// A client that opens streams without reading them does not block other clients.
#[actix_web::test]
async fn event_streams_that_are_not_read_make_room_for_new_ones() {
    let (servers, address, _cells) = many_actors();
    let mut unread = Vec::new();
    for _ in 0..MAX_STREAMS {
        unread.push(begin(address).await);
    }
    assert!(unread.iter().all(|(status, _)| *status == 200));

    // The limit of clients that do not read is half a second.
    let until = Instant::now() + Duration::from_secs(10);
    let mut reader = loop {
        let (status, stream) = begin(address).await;
        if status == 200 {
            break stream;
        }
        assert!(status == 503 && Instant::now() < until, "{status}");
    };
    let bytes = timeout(Duration::from_secs(10), read_snapshot(&mut reader)).await.unwrap();

    assert!(bytes > 20_000 * 200);
    servers.stop().await;
}

/// A viewer with many tabs does not throw out others: with one network, the newcomer is refused.
#[actix_web::test]
async fn event_streams_that_are_read_keep_their_places() {
    let (servers, address) = metrics_server(sources());
    let mut open = Vec::new();
    for _ in 0..MAX_STREAMS {
        let (status, mut stream) = begin(address).await;
        assert_eq!(status, 200);
        read_snapshot(&mut stream).await;
        open.push(stream);
    }

    let (mut refused, mut answer) = (connect(address, "/dashboard/events").await, String::new());
    refused.read_to_string(&mut answer).await.unwrap();

    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("\r\nretry-after: 5\r\n"), "{answer}");
    assert!(answer.ends_with(NO_PLACE), "{answer}");
    for stream in &mut open {
        let next = timeout(Duration::from_millis(1), stream.read_u8()).await;
        assert!(next.is_err(), "the others go on");
    }
    drop(open.pop());
    let until = Instant::now() + Duration::from_secs(10);
    while begin(address).await.0 != 200 {
        assert!(Instant::now() < until, "there is room again");
    }
    servers.stop().await;
}

/// A foreign page whose name resolves to this address (DNS rebinding).
#[actix_web::test]
async fn dashboard_refuses_foreign_host_names() {
    let options = ServerOptions { metrics: Some(any_port()), profiling: true, ..no_servers() };
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
