//! The pictures of the documentation: `cargo test --features e2e --test browser pictures -- --ignored` writes them to
//! `docs/images`.

use std::path::Path;

use anyhow::Result;

use super::{Browser, Demo, FIRST, HEADING, Window};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/images");

#[tokio::test]
#[ignore = "writes the pictures of the documentation"]
async fn pictures_of_all_views_are_taken() -> Result<()> {
    let demo = Demo::shared().await?;
    for (name, window) in [
        ("light", Window::WIDE),
        ("dark", Window { dark: true, ..Window::WIDE }),
        ("narrow-light", Window::NARROW),
        ("narrow-dark", Window { dark: true, ..Window::NARROW }),
    ] {
        let browser = Browser::open(&demo.dashboard, window).await?;
        browser.until("there are bundles", FIRST).await?;
        let bundle = browser.eval(FIRST).await?;
        let open = format!("'#/bundles/' + {bundle}");
        for (view, address, sign) in [
            ("bundles", "'#/bundles'", FIRST.to_owned()),
            ("bundle", &open, format!("{HEADING} === {bundle} && document.querySelector('.objects .rows .row')")),
            ("actors", "'#/actors'", "document.querySelector('.reconciler-rows .bars rect')".to_owned()),
            ("clusters", "'#/clusters'", "document.querySelector('.watch-rows > .watch-row')".to_owned()),
        ] {
            browser.eval(&format!("(location.hash = {address})")).await?;
            browser.until(view, &sign).await?;
            // The next frame has it all.
            browser.client.execute_async("requestAnimationFrame(() => setTimeout(arguments[0]))", vec![]).await?;
            let picture = browser.client.screenshot().await?;
            std::fs::write(Path::new(FOLDER).join(format!("dashboard-{view}-{name}.png")), picture)?;
        }
        browser.close().await?;
    }
    Ok(())
}
