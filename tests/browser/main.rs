//! The dashboard in a real browser, over the demonstration: `cargo test --features e2e --test browser`. It needs
//! `chromium` and `chromedriver`. `BUNDLES=10000` gives the demonstration so many bundles. `figures` measures the page
//! with 10,000 bundles, in a release build.
#![cfg(feature = "e2e")]

#[path = "../support/mod.rs"]
mod support;

mod browser;
mod demo;
mod figures;
mod pictures;

use std::time::Duration;

use anyhow::Result;
use fantoccini::key::Key;

use self::{
    browser::{Browser, Window},
    demo::Demo,
};

/// Longest time to take an event, by the page's own clock.
const LONGEST_UPDATE: Duration = Duration::from_millis(100);

const ADDRESS: &str = "location.hash";
const ROWS: &str = "[...document.querySelectorAll('.bundles .rows .row:not([hidden])')]";
const SELECTED: &str = "document.querySelector('.bundles .row[aria-selected=true] .bundle-link')?.textContent";
const FIRST: &str = "document.querySelector('.bundles .rows .row[aria-rowindex=\"2\"] .bundle-link')?.textContent";
const COUNTS: &str = "Object.fromEntries([...document.querySelectorAll('.tile')].map((tile) => \
                      [tile.lastChild.textContent, Number(tile.firstChild.textContent.replaceAll(',', ''))]))";
const WHY: &str = "document.querySelector('.conditions .tone-bad .lines li')?.textContent";
const HEADING: &str = "document.querySelector('.bundle-name')?.textContent";
const STATE: &str = "document.querySelector('.bundle-head .pill')?.textContent";

#[tokio::test]
async fn page_shows_the_broken_bundles_first_and_filters_them() -> Result<()> {
    let demo = Demo::shared().await?;
    let browser = Browser::open(&demo.dashboard, Window::WIDE).await?;

    let counts =
        browser.until("all bundles are counted", &format!("({COUNTS})['All bundles'] > 0 && {COUNTS}")).await?;
    let states = browser.eval(&format!("{ROWS}.map((row) => row.querySelector('.state-text').textContent)[0]")).await?;
    browser.click(".tile[data-state=broken]").await?;
    browser.until("the address has the filter", &format!("{ADDRESS} === '#/bundles?state=broken'")).await?;
    let shown =
        format!("Number(document.querySelector('.bundles').getAttribute('aria-rowcount')) - 1 === ({COUNTS}).Broken");
    browser.until("only broken bundles are shown", &shown).await?;
    let others = format!("{ROWS}.some((row) => !row.querySelector('.dot.state-broken'))");
    let others = browser.eval(&others).await?;
    browser.click(".wrong-head").await?;
    browser.until("the address has the reason", &format!("{ADDRESS}.includes('reason=')")).await?;
    browser.keys(&[Key::Escape.into()]).await?;
    browser.until("the filters are cleared", &format!("{ADDRESS} === '#/bundles'")).await?;

    assert_eq!(states, "Broken");
    assert_eq!(others, false);
    assert_eq!(counts["All bundles"], demo.bundles);
    assert!(counts["Healthy"].as_u64() > Some(0), "{counts}");
    browser.close().await
}

#[tokio::test]
async fn page_of_a_bundle_opens_by_keyboard_and_survives_a_reload() -> Result<()> {
    let demo = Demo::shared().await?;
    let browser = Browser::open(&demo.dashboard, Window::WIDE).await?;
    browser.until("there are bundles", FIRST).await?;

    browser.keys(&['/']).await?;
    browser.keys(&"is:broken".chars().collect::<Vec<_>>()).await?;
    browser.until("the address has the search", &format!("{ADDRESS} === '#/bundles?q=is:broken'")).await?;
    // The last one has been broken for the longest time: users will not mend it.
    browser.keys(&[Key::Enter.into(), Key::End.into()]).await?;
    let bundle = browser.until("a bundle is selected", SELECTED).await?;
    browser.keys(&[Key::Enter.into()]).await?;
    browser
        .until("the bundle is open", &format!("{HEADING} === {bundle} && {ADDRESS} === '#/bundles/' + {bundle}"))
        .await?;
    browser.until("the page says why", WHY).await?;
    let described = format!("document.querySelector('.commands code').textContent.includes('describe ' + {bundle})");
    let described = browser.eval(&described).await?;
    browser.client.refresh().await?;
    browser.until("the bundle is open again", &format!("{HEADING} === {bundle}")).await?;
    browser.until("the page says why again", WHY).await?;
    browser.keys(&[Key::Escape.into()]).await?;
    browser
        .until("the list is back", &format!("{ADDRESS}.startsWith('#/bundles') && {ADDRESS}.split('/').length === 2"))
        .await?;

    assert_eq!(described, true);
    browser.close().await
}

#[tokio::test]
async fn page_of_a_bundle_shows_its_objects_secrets_and_reconciles() -> Result<()> {
    let demo = Demo::shared().await?;
    let browser = Browser::open(&demo.dashboard, Window::WIDE).await?;
    browser.until("there are bundles", FIRST).await?;

    browser.click(".tile[data-state=healthy]").await?;
    let others = format!("{ROWS}.some((row) => !row.querySelector('.dot.state-healthy'))");
    let healthy = format!("{ADDRESS} === '#/bundles?state=healthy' && !{others}");
    browser.until("healthy bundles are shown", &healthy).await?;
    browser.click(".bundles .rows .row[aria-rowindex=\"2\"] .bundle-link").await?;
    browser.until("its objects are shown", "document.querySelector('.objects .rows .row:not([hidden])')").await?;
    let conditions = browser.eval("document.querySelectorAll('.conditions > li:not([hidden])').length").await?;
    let secrets = browser.eval("document.querySelectorAll('.secrets > li:not([hidden])').length").await?;
    let next = browser.eval("document.querySelector('.sentence').textContent").await?;
    browser.click(".objects .rows .row:not([hidden])").await?;
    let trace = "document.querySelector('.selected-object code')?.textContent";
    let trace = browser.until("the selected object is shown", trace).await?;
    browser.click(".bundle-head .step").await?;
    browser.until("its actor is open", &format!("{ADDRESS}.startsWith('#/actors/managedresource/')")).await?;
    browser
        .until("its last reconciles are shown", "document.querySelector('.details .reconciles > li:not([hidden])')")
        .await?;
    browser.client.back().await?;
    browser.until("the bundle is back", &format!("{ADDRESS}.split('/').length === 4")).await?;

    assert_eq!(conditions, 3);
    assert!(secrets.as_u64() > Some(0), "{secrets}");
    assert!(next.as_str().is_some_and(|next| !next.is_empty()), "{next}");
    assert!(trace.as_str().is_some_and(|trace| trace.starts_with("gardener-resource-manager trace ")), "{trace}");
    browser.close().await
}

#[tokio::test]
async fn page_follows_a_bundle_that_breaks_and_is_mended() -> Result<()> {
    let demo = Demo::shared().await?;
    let browser = Browser::open(&format!("{}#/bundles?state=broken", demo.dashboard), Window::WIDE).await?;
    browser.until("broken bundles are shown", FIRST).await?;

    // Users break a bundle, and mend it before they break the next. The latest is the first of the list.
    let before = browser.eval(&format!("{ROWS}.map((row) => row.querySelector('.bundle-link').textContent)")).await?;
    let bundle = browser.until("a bundle breaks", &format!("!{before}.includes({FIRST}) && {FIRST}")).await?;
    browser.eval(&format!("(location.hash = '#/bundles/' + {bundle})")).await?;
    browser.until("the bundle is open", &format!("{HEADING} === {bundle}")).await?;
    browser.until("the bundle is mended", &format!("!{STATE}.startsWith('Broken')")).await?;

    browser.close().await
}

#[tokio::test]
async fn page_switches_views_by_keyboard() -> Result<()> {
    let demo = Demo::shared().await?;
    let browser = Browser::open(&demo.dashboard, Window::WIDE).await?;
    browser.until("there are bundles", FIRST).await?;

    browser.keys(&['2']).await?;
    browser
        .until("actors are shown", &format!("{ADDRESS} === '#/actors' && document.querySelector('.actors .rows .row')"))
        .await?;
    let reconcilers = browser
        .until("reconcilers are shown", "document.querySelectorAll('.reconciler-rows .bars rect').length")
        .await?;
    browser.keys(&[Key::Down.into(), Key::Enter.into()]).await?;
    browser.until("an actor is selected", "document.querySelector('.actors .row[aria-selected=true]')").await?;
    browser.keys(&['3']).await?;
    browser
        .until(
            "clusters are shown",
            &format!("{ADDRESS} === '#/clusters' && document.querySelector('.cluster .watch-rows > .watch-row')"),
        )
        .await?;
    let clusters =
        browser.eval("[...document.querySelectorAll('.cluster h2')].map((title) => title.textContent).sort()").await?;
    browser.keys(&['/']).await?;
    browser.keys(&"resourceClass".chars().collect::<Vec<_>>()).await?;
    browser.until("the configuration is searched", "document.querySelector('.config .found')").await?;
    browser.keys(&[Key::Escape.into()]).await?;
    browser.keys(&['1']).await?;
    browser.until("bundles are shown", &format!("{ADDRESS}.startsWith('#/bundles')")).await?;

    assert!(reconcilers.as_u64() > Some(0));
    assert_eq!(clusters, serde_json::json!(["source", "target"]));
    browser.close().await
}

#[tokio::test]
async fn page_sorts_by_the_heads_of_columns() -> Result<()> {
    let demo = Demo::shared().await?;
    let browser = Browser::open(&format!("{}#/bundles?state=healthy", demo.dashboard), Window::WIDE).await?;
    browser.until("there are bundles", FIRST).await?;

    let head = ".bundles .head .name .sort";
    let sorted = "document.querySelector('.bundles .head .name').getAttribute('aria-sort')";
    browser.click(head).await?;
    browser
        .until("the order is by name", &format!("{sorted} === 'ascending' && {ADDRESS}.includes('sort=name')"))
        .await?;
    let names = format!(
        "{ROWS}.sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((row) => row.querySelector('.bundle-link').textContent)"
    );
    let in_order =
        browser.eval(&format!("(({names}).every((name, index, all) => index === 0 || all[index - 1] < name))")).await?;
    browser.click(head).await?;
    browser
        .until("the order is reversed", &format!("{sorted} === 'descending' && {ADDRESS}.includes('sort=-name')"))
        .await?;

    assert_eq!(in_order, true);
    browser.close().await
}

#[tokio::test]
async fn page_fits_a_narrow_window_and_keeps_the_problem() -> Result<()> {
    let demo = Demo::shared().await?;
    let browser = Browser::open(&demo.dashboard, Window::NARROW).await?;
    browser.until("there are bundles", FIRST).await?;

    let problem = format!("{ROWS}[0].querySelector('.words').getBoundingClientRect().width > 100");
    let problem = browser.eval(&problem).await?;
    let fits = "document.documentElement.scrollWidth <= innerWidth";
    for view in ["#/bundles", "#/actors", "#/clusters"] {
        browser.eval(&format!("(location.hash = '{view}')")).await?;
        browser
            .until(
                &format!("{view} is shown"),
                &format!("document.querySelector('.tab[aria-current]').hash === '{view}'"),
            )
            .await?;
        assert_eq!(browser.eval(fits).await?, true, "{view}");
        let scrolls = "[...document.querySelectorAll('.view:not([hidden])')].every((view) => view.scrollWidth <= view.clientWidth)";
        assert_eq!(browser.eval(scrolls).await?, true, "{view}");
    }

    assert_eq!(problem, true);
    browser.close().await
}

#[tokio::test]
async fn page_takes_events_quickly() -> Result<()> {
    let demo = Demo::shared().await?;
    let browser = Browser::open(&demo.dashboard, Window::WIDE).await?;
    browser.until("there are bundles", FIRST).await?;

    let first = browser.eval("document.body.dataset.shown").await?;
    let mut times = Vec::new();
    let mut version = browser.eval("document.body.dataset.version").await?;
    while times.len() < 9 {
        let next = format!(
            "document.body.dataset.version !== {version} && [document.body.dataset.version, document.body.dataset.took]"
        );
        let next = browser.until("an event comes", &next).await?;
        version = next[0].clone();
        times.push(next[1].as_str().unwrap_or_default().parse::<f64>()?);
    }
    times.sort_by(f64::total_cmp);

    println!("{} bundles: shown after {first} ms, events in {times:?} ms", demo.bundles);
    let median = Duration::from_secs_f64(times[times.len() / 2] / 1000.0);
    assert!(median <= LONGEST_UPDATE, "{times:?}");
    browser.close().await
}

#[tokio::test]
async fn page_tells_that_the_connection_is_lost() -> Result<()> {
    let demo = Demo::start(5, 2).await?;
    let browser = Browser::open(&demo.dashboard, Window::WIDE).await?;
    browser.until("there are bundles", FIRST).await?;

    drop(demo);
    browser
        .until("the page tells it", "document.getElementById('banner').textContent.startsWith('Connection lost')")
        .await?;

    assert!(browser.eval(FIRST).await?.is_string(), "the last state stays");
    browser.close_unchecked().await
}
