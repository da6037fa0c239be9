//! Routes of the plain servers.

use actix_web::{Route, guard, web};

/// Returns a route for GET and HEAD. The HTTP library sends the answer to HEAD without its body, but polls that body to
/// its end. So a handler whose body has no end must give HEAD another one.
pub(crate) fn get() -> Route {
    web::route().guard(guard::Any(guard::Get()).or(guard::Head()))
}
