//! A window of Chromium without a screen, driven through chromedriver.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, anyhow, ensure};
use bytes::Bytes;
use fantoccini::{
    Client, ClientBuilder, Locator,
    actions::{InputSource as _, KeyAction, KeyActions},
};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::support::{Process, eventually};

const LIMIT: Duration = Duration::from_secs(60);
const DRIVER: &str = "chromedriver";
const STARTED: &str = "was started successfully on port ";

/// Nothing but the page: no sandbox, because containers run as root; no requests of the browser itself.
const ARGUMENTS: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
];

/// Size and colours of a window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) dark: bool,
}

impl Window {
    pub(crate) const WIDE: Self = Self { width: 1400, height: 900, dark: false };
    pub(crate) const NARROW: Self = Self { width: 360, height: 740, dark: false };
}

pub(crate) struct Browser {
    pub(crate) client: Client,
    session: String,
    port: u16,
    _driver: Process,
    _folder: TempDir,
}

impl Browser {
    /// Opens a window with the page at `address`.
    pub(crate) async fn open(address: &str, window: Window) -> Result<Self> {
        let program = find(DRIVER).with_context(|| {
            format!(
                "{DRIVER} is not in the PATH. Install Chromium and its driver: apt-get install chromium chromium-driver"
            )
        })?;
        let folder = tempfile::tempdir()?;
        let temporary = ("TMPDIR".to_owned(), folder.path().display().to_string());
        let log = folder.path().join("printed");
        let mut driver = Process::spawn(&program, &["--port=0".to_owned()], &[temporary], &log)?;
        let port = eventually("chromedriver has started", LIMIT, async || {
            if let Err(ended) = driver.check_running() {
                return Ok(Err(ended));
            }
            let printed = driver.log();
            let (_, rest) = printed.split_once(STARTED).ok_or_else(|| anyhow!("it prints: {printed}"))?;
            Ok(Ok(rest.split_once('.').context("the port is not complete")?.0.parse()?))
        });
        let port = port.await??;
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities(window))
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .context("Chromium does not start: apt-get install chromium")?;
        let session = client.session_id().await?.context("a session has an id")?;
        let browser = Self { client, session, port, _driver: driver, _folder: folder };
        browser.client.goto(address).await?;
        Ok(browser)
    }

    /// Returns the value of an expression in the page.
    pub(crate) async fn eval(&self, expression: &str) -> Result<Value> {
        self.client.execute(&format!("return ({expression})"), vec![]).await.with_context(|| expression.to_owned())
    }

    /// Waits until the value of an expression is true in the sense of JavaScript, and returns it.
    pub(crate) async fn until(&self, what: &str, expression: &str) -> Result<Value> {
        let outcome = eventually(what, LIMIT, async || {
            let value = self.eval(expression).await?;
            let is_true = !matches!(&value, Value::Null | Value::Bool(false)) && value != "" && value != 0;
            ensure!(is_true, "{expression} is {value}");
            Ok(value)
        });
        match outcome.await {
            Ok(value) => Ok(value),
            Err(error) => Err(error.context(format!("the page says: {}", self.text().await))),
        }
    }

    async fn text(&self) -> String {
        let text = self.eval("document.body.innerText").await.unwrap_or_default();
        text.as_str().unwrap_or_default().chars().take(2000).collect()
    }

    /// Presses keys, one after the other.
    pub(crate) async fn keys(&self, keys: &[char]) -> Result<()> {
        let actions = keys.iter().fold(KeyActions::new("keyboard".to_owned()), |actions, key| {
            actions.then(KeyAction::Down { value: *key }).then(KeyAction::Up { value: *key })
        });
        Ok(self.client.perform_actions(actions).await?)
    }

    pub(crate) async fn click(&self, selector: &str) -> Result<()> {
        let element = self.client.wait().at_most(LIMIT).for_element(Locator::Css(selector)).await;
        Ok(element.with_context(|| selector.to_owned())?.click().await?)
    }

    /// Closes the window. Fails if the page had an error, was refused something, or asked another server.
    pub(crate) async fn close(self) -> Result<()> {
        let foreign = self.eval("performance.getEntriesByType('resource').map(({ name }) => name).filter((name) => !name.startsWith(location.origin + '/'))");
        let foreign = foreign.await?;
        let log = self.log().await?;
        self.close_unchecked().await?;
        ensure!(foreign == json!([]), "the page asks others: {foreign}");
        ensure!(log == json!([]), "the page logs: {log:#}");
        Ok(())
    }

    /// Returns what the page has logged. WebDriver itself has no command for it.
    async fn log(&self) -> Result<Value> {
        let client = legacy::Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
        let request = http::Request::post(format!("http://127.0.0.1:{}/session/{}/se/log", self.port, self.session))
            .header("content-type", "application/json")
            .body(Full::from(r#"{"type": "browser"}"#))?;
        let answer = client.request(request).await?.into_body().collect().await?.to_bytes();
        Ok(serde_json::from_slice::<Value>(&answer)?["value"].take())
    }

    /// Closes the window of a page that lost its server.
    pub(crate) async fn close_unchecked(self) -> Result<()> {
        Ok(self.client.close().await?)
    }
}

fn capabilities(window: Window) -> Map<String, Value> {
    let mut arguments = ARGUMENTS.map(str::to_owned).to_vec();
    if window.dark {
        arguments.push("--blink-settings=preferredColorScheme=0".to_owned());
    }
    let metrics =
        json!({"width": window.width, "height": window.height, "pixelRatio": 1.0, "mobile": false, "touch": false});
    let options = json!({"args": arguments, "mobileEmulation": {"deviceMetrics": metrics}});
    let logs = json!({"browser": "ALL"});
    [("goog:chromeOptions", options), ("goog:loggingPrefs", logs)]
        .map(|(key, value)| (key.to_owned(), value))
        .into_iter()
        .collect()
}

/// The program of this name in the `PATH`.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| Path::is_file(file))
}
