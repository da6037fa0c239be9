//! Profiles of the running process (spec 70 §9.3), below `/debug/pprof` of the metrics server, while
//! `debugging.enableProfiling` is on. Without the feature `profiling`, a build has only the index and the actors.
//! `cpu.rs` samples the running code, `heap.rs` shows what the allocator holds, `symbols.rs` names addresses,
//! `actors.rs` lists actors as Go's programs list goroutines. Profiles are in pprof's format (`go tool pprof
//! http://…/debug/pprof/profile`): addresses, names of functions and files of this program, never content of memory.

mod actors;
#[cfg(feature = "profiling")]
mod cpu;
#[cfg(feature = "profiling")]
mod heap;
#[cfg(not(feature = "profiling"))]
mod not_built;
#[cfg(feature = "profiling")]
mod symbols;

use std::{fmt::Display, sync::Arc};

use actix_web::{HttpResponse, http::StatusCode, middleware::from_fn, web};
#[cfg(feature = "profiling")]
pub(crate) use heap::prepare;
use kit::StatusRegistry;
#[cfg(not(feature = "profiling"))]
pub(crate) use not_built::prepare;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{dashboard::host, http::route};

const TEXT: &str = "text/plain; charset=utf-8";
#[cfg(feature = "profiling")]
const PROFILE: &str = "application/octet-stream";

const INDEX: [(&str, &str); 6] = [
    ("profile?seconds=30", "CPU profile: what runs in the next seconds (1 to 600), 100 samples a second"),
    ("heap", "memory in use by where it was allocated, sampled every 512 KiB since the start"),
    ("allocator", "statistics of the allocator"),
    ("actors", "actors by kind and by what they do; also as goroutine"),
    ("symbol?0x0", "names of the functions at addresses, separated by +"),
    ("trace", "not here: spans go to a collector of OpenTelemetry"),
];

/// Adds the routes. `end` cancels profiles that are being taken.
pub(crate) fn routes(config: &mut web::ServiceConfig, status_registry: StatusRegistry, end: CancellationToken) {
    config
        .app_data(web::Data::new(end))
        .app_data(web::Data::from(Arc::new(Semaphore::new(1))))
        .app_data(web::Data::new(status_registry))
        .service(web::redirect("/debug/pprof", "/debug/pprof/").using_status_code(StatusCode::FOUND))
        .service(
            measured(web::scope("/debug/pprof"))
                .wrap(from_fn(host::check))
                .route("/", route::get().to(index))
                .route("/actors", route::get().to(actors::list))
                .route("/goroutine", route::get().to(actors::list))
                .route("/trace", route::get().to(no_trace)),
        );
}

#[cfg(not(feature = "profiling"))]
use not_built::routes as measured;

#[cfg(feature = "profiling")]
fn measured(scope: actix_web::Scope) -> actix_web::Scope {
    scope
        .route("/profile", route::get().to(cpu::profile))
        .route("/heap", route::get().to(heap::profile))
        .route("/allocator", route::get().to(heap::statistics))
        .route("/symbol", route::get().to(symbols::of_query))
        .route("/symbol", web::post().to(symbols::of_body))
}

async fn index() -> HttpResponse {
    let rows: String =
        INDEX.iter().map(|(path, meaning)| format!("<tr><td><a href=\"{path}\">{path}</a><td>{meaning}\n")).collect();
    let page = format!("<!doctype html><title>Profiles</title>\n<h1>Profiles</h1>\n<table>\n{rows}</table>\n");
    HttpResponse::Ok().content_type("text/html; charset=utf-8").body(page)
}

async fn no_trace() -> HttpResponse {
    let text = "There are no execution traces. Set OTEL_EXPORTER_OTLP_ENDPOINT in a build with the feature otel: reconciles, \
                reviews and requests are then exported as spans.\n";
    HttpResponse::NotFound().content_type(TEXT).body(text)
}

#[cfg(feature = "profiling")]
fn download(name: &str, profile: Vec<u8>) -> HttpResponse {
    HttpResponse::Ok()
        .content_type(PROFILE)
        .insert_header(("Content-Disposition", format!("attachment; filename=\"{name}\"")))
        .insert_header(("X-Content-Type-Options", "nosniff"))
        .body(profile)
}

fn plain(text: String) -> HttpResponse {
    HttpResponse::Ok().content_type(TEXT).body(text)
}

fn refuse(status: StatusCode, why: impl Display) -> HttpResponse {
    HttpResponse::build(status).content_type(TEXT).body(format!("{why}\n"))
}
