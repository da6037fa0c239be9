//! What a build without the feature `profiling` answers. Such a build is for development: it has neither the allocator
//! that takes samples nor the libraries that read them.

use std::path::Path;

use actix_web::{HttpResponse, http::StatusCode, web};

use super::refuse;

#[derive(Debug, thiserror::Error)]
#[error("this build has no profiles; build it with --features profiling")]
pub(crate) struct NotBuilt;

pub(crate) fn prepare(_config: Option<&Path>) -> Result<(), NotBuilt> {
    Err(NotBuilt)
}

pub(super) fn routes(scope: actix_web::Scope) -> actix_web::Scope {
    ["/profile", "/heap", "/allocator", "/symbol"]
        .into_iter()
        .fold(scope, |scope, path| scope.route(path, web::to(refused)))
}

async fn refused() -> HttpResponse {
    refuse(StatusCode::NOT_IMPLEMENTED, NotBuilt)
}
