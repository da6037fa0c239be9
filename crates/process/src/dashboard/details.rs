//! `dashboard/details`: what only the controllers' thread knows of one actor. The only request that asks it; the others
//! read shared memory.

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use jiff::Timestamp;
use kit::ActorDetails;
use serde::Serialize;

use super::{feed::render, row::Row, shown::Shown};

/// How long an answer may take.
pub(super) const LIMIT: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct DetailsDocument<'a> {
    now: Timestamp,
    row: Row<'a>,
    details: &'a [(String, String)],
    #[serde(flatten)]
    known: ActorDetails,
}

#[derive(Serialize)]
struct ErrorDocument {
    error: String,
}

/// Answers a request with `?path=` of an actor: 404 if there is none, 503 if the thread does not answer in time.
pub(super) async fn answer(request: &HttpRequest, shown: &Shown) -> HttpResponse {
    let pairs = web::Query::<Vec<(String, String)>>::from_query(request.query_string());
    let pairs = pairs.map(web::Query::into_inner).unwrap_or_default();
    let path = pairs.into_iter().find_map(|(key, value)| (key == "path").then_some(value)).unwrap_or_default();
    let missing = || refuse(StatusCode::NOT_FOUND, format!("there is no actor {}", kit::quote::shown(&path)));
    if shown.status_registry.actor(&path).is_none() {
        return missing();
    }
    let known = match shown.status_registry.ask(&path, LIMIT).await {
        Ok(known) => known.unwrap_or_default(),
        Err(unanswered) => return refuse(StatusCode::SERVICE_UNAVAILABLE, unanswered.to_string()),
    };
    // Read after the answer, so that the row is not older.
    let Some(actor) = shown.status_registry.actor(&path) else { return missing() };
    let document =
        DetailsDocument { now: shown.now(), row: Row::without_details(&actor), details: &actor.details, known };
    json(StatusCode::OK, &document)
}

fn refuse(status: StatusCode, error: String) -> HttpResponse {
    json(status, &ErrorDocument { error })
}

fn json(status: StatusCode, document: &impl Serialize) -> HttpResponse {
    HttpResponse::build(status).content_type("application/json").body(render(document))
}
