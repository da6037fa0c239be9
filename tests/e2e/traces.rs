//! What an OpenTelemetry collector receives.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Result, ensure};
use serde_json::json;

use super::{
    objects::{Admin, bundles, core, is_applied, managed_resource, objects, secret},
    support::{ControlPlane, Grm, Options, Settings, eventually},
};

/// The bodies of all requests to `/v1/traces`. Names and values are plain text in them.
type Received = Arc<Mutex<Vec<u8>>>;

fn collector() -> Result<(String, Received)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("http://{}", listener.local_addr()?);
    let received = Received::default();
    let taken = received.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(stream), taken) = (stream, taken.clone()) else { return };
            // An error ends it when the connection ends.
            std::thread::spawn(move || -> Result<()> {
                let mut stream = BufReader::new(stream);
                loop {
                    let request = request(&mut stream)?;
                    taken.lock().unwrap_or_else(PoisonError::into_inner).extend(request);
                    stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
                }
            });
        }
    });
    Ok((address, received))
}

fn request(stream: &mut BufReader<TcpStream>) -> Result<Vec<u8>> {
    let mut head = String::new();
    let mut length = 0;
    while !head.ends_with("\r\n\r\n") {
        let begin = head.len();
        ensure!(stream.read_line(&mut head)? > 0, "the connection has ended");
        if let Some(text) = head[begin..].to_lowercase().strip_prefix("content-length:") {
            length = text.trim().parse()?;
        }
    }
    let mut request = head.into_bytes();
    stream.take(length).read_to_end(&mut request)?;
    Ok(request)
}

#[tokio::test]
async fn traces_of_reconciles_and_requests_hide_the_content_of_secrets() -> Result<()> {
    let cluster = ControlPlane::start(Options::default()).await?;
    let admin = Admin::prepare(&cluster, "ns").await?;
    let (address, received) = collector()?;
    let config = json!({ "controllers": { "managedResource": { "concurrentSyncs": 5 } } });
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    // As in an image without certificate authorities, which plain HTTP does not need.
    let environment = vec![
        variable("OTEL_EXPORTER_OTLP_ENDPOINT", &address),
        variable("OTEL_BSP_SCHEDULE_DELAY", "100"),
        variable("SSL_CERT_FILE", "/nowhere"),
        variable("SSL_CERT_DIR", "/nowhere"),
    ];
    let mut grm = Grm::spawn(&cluster, &cluster, Settings { config, environment })?;
    grm.wait_ready().await?;

    admin.create(&core("ns", "secrets"), &secret("ns", "web", &objects("ns", "of-web", "confidential"))).await?;
    admin.create(&bundles("ns"), &managed_resource("ns", "web")).await?;

    eventually("the ManagedResource is applied", Duration::from_secs(30), async || {
        let bundle = admin.get(&format!("{}/web", bundles("ns"))).await?;
        ensure!(is_applied(&bundle), "{bundle}");
        Ok(())
    })
    .await?;
    let expected = [
        "POST /v1/traces",
        "gardener-resource-manager",
        "reconcile",
        "managedresource",
        "reconcileID",
        "request",
        "/api/v1/namespaces/ns/configmaps",
        "http.response.status_code",
    ];
    eventually("the spans arrive", Duration::from_secs(10), async || {
        let bytes = received.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        for part in expected {
            ensure!(text.contains(part), "nothing says {part}");
        }
        ensure!(!text.contains("confidential"), "the content of a Secret was exported");
        Ok(())
    })
    .await?;
    ensure!(grm.terminate(Duration::from_secs(10)).await?.success(), "{}", grm.log());
    Ok(())
}
