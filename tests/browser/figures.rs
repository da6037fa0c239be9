//! How long the page takes with 10,000 bundles. Ten of them change each second:
//! `cargo test --release --features e2e --test browser figures -- --ignored --nocapture`.

use std::time::Duration;

use anyhow::{Context, Result};

use super::{Browser, Demo, FIRST, LONGEST_UPDATE, Window};

const BUNDLES: usize = 10_000;
const CHANGES_PER_SECOND: usize = 10;
const RELOADS: usize = 5;
const UPDATES: usize = 40;

/// From the begin of the navigation until the page has taken the snapshot and its first frame is drawn.
const LONGEST_START: Duration = Duration::from_secs(1);

/// Calls back in milliseconds since the begin of the navigation, when the present state of the page is drawn.
const DRAWN: &str = "requestAnimationFrame(() => setTimeout(() => arguments[0](performance.now())))";

/// Notes how long the page's thread is busy at a time, as far as it is longer than 50 ms.
const WATCH_TASKS: &str = "(window.tasks = [], new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((task) => task.duration))).observe({ entryTypes: ['longtask'] }), true)";

/// Calls back with how long the next event took until it was drawn, in milliseconds.
const UPDATE: &str = "const done = arguments[0]; \
    new MutationObserver((_, observer) => { \
      observer.disconnect(); \
      const [took, begin] = [Number(document.body.dataset.took), performance.now()]; \
      requestAnimationFrame(() => setTimeout(() => done([took, took + performance.now() - begin]))); \
    }).observe(document.body, { attributes: true, attributeFilter: ['data-version'] })";

#[tokio::test]
#[ignore = "takes minutes in a release build"]
async fn page_of_ten_thousand_bundles_is_quick() -> Result<()> {
    let demo = Demo::start(BUNDLES, CHANGES_PER_SECOND).await?;
    let browser = Browser::open(&demo.dashboard, Window::WIDE).await?;
    let number = |value: &serde_json::Value| value.as_f64().context("a number");

    let mut starts = Vec::new();
    for _ in 0..RELOADS {
        browser.client.refresh().await?;
        browser.until("there are bundles", FIRST).await?;
        let shown = browser.eval("Number(document.body.dataset.shown)").await?;
        starts.push(number(&shown)?);
    }
    let drawn = browser.client.execute_async(DRAWN, vec![]).await?;
    browser.eval(WATCH_TASKS).await?;
    let (mut took, mut drawn_after) = (Vec::new(), Vec::new());
    for _ in 0..UPDATES {
        let times = browser.client.execute_async(UPDATE, vec![]).await?;
        took.push(number(&times[0])?);
        drawn_after.push(number(&times[1])?);
    }
    let tasks = browser.eval("window.tasks.map(Math.round)").await?;

    for times in [&mut starts, &mut took, &mut drawn_after] {
        times.sort_by(f64::total_cmp);
    }
    println!("{BUNDLES} bundles, {CHANGES_PER_SECOND} changes a second; in milliseconds:");
    println!("  shown after {starts:.0?}, in the last of these pages drawn at {drawn}");
    println!("  an event is taken within {took:.1?}");
    println!("  and drawn within {drawn_after:.1?}, the wait for the next frame included");
    println!("  the thread of the page was busy for more than 50 ms at a time: {tasks}");
    let median = |times: &[f64]| Duration::from_secs_f64(times[times.len() / 2] / 1000.0);
    assert!(median(&starts) <= LONGEST_START && median(&drawn_after) <= LONGEST_UPDATE);
    browser.close().await
}
