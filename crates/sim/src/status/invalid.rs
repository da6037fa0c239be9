//! Refusals of content (422), of load and timing (429, 503, 504) and of the server itself (500, 501).

use serde_json::Value;

use super::{super::kinds::ServedKind, Cause, Details, Failure, Status, of_resource, qualified};

const LIST_OPTIONS: &str = "ListOptions.meta.k8s.io"; // the object of findings about parameters of lists and watches

/// The text of several findings. Equal findings appear once.
fn summary(causes: &[Cause]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for cause in causes {
        let line = cause.line();
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    match lines.as_slice() {
        [line] => line.clone(),
        lines => format!("[{}]", lines.join(", ")),
    }
}

impl Failure {
    pub(crate) fn invalid(kind: &ServedKind, name: &str, causes: Vec<Cause>) -> Self {
        let (group, _) = kind.home();
        let message = format!("{} \"{name}\" is invalid: {}", qualified(&kind.kind, group), summary(&causes));
        let details =
            Details { name: name.into(), group: group.into(), kind: kind.kind.clone(), causes, ..Details::default() };
        Self::new(422, "Invalid", message, Some(details))
    }

    pub(crate) fn unless_empty(kind: &ServedKind, name: &str, causes: Vec<Cause>) -> Result<(), Self> {
        if causes.is_empty() { Ok(()) } else { Err(Self::invalid(kind, name, causes)) }
    }

    /// 422: updates of this kind need a version. Names the resource, unlike the other texts.
    pub(crate) fn version_required(kind: &ServedKind, name: &str) -> Self {
        let cause = Cause::invalid("metadata.resourceVersion", &0.into(), "must be specified for an update");
        let resource = qualified(&kind.plural, &kind.group);
        let message = format!("{resource} \"{name}\" is invalid: {}", cause.line());
        let details = Details { causes: vec![cause], ..of_resource(kind, name) };
        Self::new(422, "Invalid", message, Some(details))
    }

    pub(crate) fn wrong_custom_kind(kind: &ServedKind, name: &str, sent: &str) -> Self {
        let cause = Cause::invalid("kind", &sent.into(), &format!("must be {}", kind.kind));
        Self::invalid(kind, name, vec![cause])
    }

    pub(crate) fn patch_does_not_apply() -> Self {
        Self::generic(422, "Invalid", "the server rejected our request due to an error in our request")
    }

    /// 422: the patched object is invalid. The real server repeats it here, even a Secret.
    pub(crate) fn patch_result(text: &str) -> Self {
        let cause = Cause::invalid("patch", &"<object>".into(), text);
        let message = format!(" \"\" is invalid: {}", cause.line());
        Self::new(422, "Invalid", message, Some(Details { causes: vec![cause], ..Details::default() }))
    }

    pub(crate) fn patched_to_another_type() -> Self {
        Self::patch_result("the type of the object does not match the one of the path")
    }

    pub(crate) fn unknown_propagation_policy(policy: &str) -> Self {
        let supported = ["Foreground", "Background", "Orphan", "nil"];
        let cause = Cause::not_supported("propagationPolicy", &policy.into(), &supported);
        Self::options("DeleteOptions.meta.k8s.io", "DeleteOptions", cause)
    }

    pub(crate) fn match_without_version() -> Self {
        Self::list_option("resourceVersionMatch is forbidden unless resourceVersion is provided")
    }

    pub(crate) fn unknown_match(text: &str) -> Self {
        let supported = ["Exact", "NotOlderThan", ""];
        let cause = Cause::not_supported("resourceVersionMatch", &text.into(), &supported);
        Self::options(LIST_OPTIONS, "ListOptions", cause)
    }

    pub(crate) fn exact_match_of_zero() -> Self {
        Self::list_option("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"")
    }

    pub(crate) fn initial_events_without_match() -> Self {
        Self::list_option("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
    }

    pub(crate) fn match_on_watch() -> Self {
        Self::list_option("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
    }

    fn list_option(text: &str) -> Self {
        Self::options(LIST_OPTIONS, "ListOptions", Cause::forbidden("resourceVersionMatch", text))
    }

    fn options(qualified: &str, kind: &str, cause: Cause) -> Self {
        let message = format!("{qualified} \"\" is invalid: {}", cause.line());
        let details =
            Details { group: "meta.k8s.io".into(), kind: kind.into(), causes: vec![cause], ..Details::default() };
        Self::new(422, "Invalid", message, Some(details))
    }

    pub(crate) fn too_many_requests() -> Self {
        Self { retry_after: Some(1), ..Self::plain(429, "Too many requests, please try again later.\n") }
    }

    /// 503 of a starting server, for a path that it may know later.
    pub(crate) fn starting() -> Self {
        let text = "the request has been made before all known HTTP paths have been installed, please try again";
        let details = Details { retry_after_seconds: Some(5), ..Details::default() };
        Self { retry_after: Some(5), ..Self::new(503, "ServiceUnavailable", text.to_owned(), Some(details)) }
    }

    pub(crate) fn service_unavailable_text() -> Self {
        Self::plain(503, "service unavailable\n")
    }

    pub(crate) fn version_in_future(asked: u64, present: u64) -> Self {
        let text = "Too large resource version";
        let cause = Cause { reason: "ResourceVersionTooLarge", message: text.into(), field: String::new() };
        let details = Details { causes: vec![cause], retry_after_seconds: Some(1), ..Details::default() };
        let message = format!("Timeout: {text}: {asked}, current: {present}");
        Self::new(504, "Timeout", message, Some(details))
    }

    pub(crate) fn internal(text: &str) -> Self {
        Self::of(Status { code: 500, message: text.into(), ..Status::new() })
    }

    pub(crate) fn version_on_create() -> Self {
        Self::internal("resourceVersion should not be set on objects to be created")
    }

    pub(crate) fn bad_version(text: &str) -> Self {
        Self::internal(&format!("strconv.ParseUint: parsing {}: invalid syntax", Value::from(text)))
    }

    pub(crate) fn watch_version(text: &str) -> Self {
        let text = Value::from(text);
        Self::internal(&format!(
            "resourceVersion: Invalid value: {text}: strconv.ParseUint: parsing {text}: invalid syntax"
        ))
    }

    /// 500: a custom object is too large for the database, or even for the request to it.
    pub(crate) fn request_too_large_for_storage(size: usize) -> Self {
        const LARGEST_SENT: usize = 2 * 1024 * 1024;
        if size <= LARGEST_SENT {
            return Self::internal("etcdserver: request is too large");
        }
        Self::internal(&format!(
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max ({size} vs. {LARGEST_SENT})"
        ))
    }

    /// 501: the real server can do this, the simulator cannot.
    pub(crate) fn not_simulated(what: &str) -> Self {
        Self::new(501, "NotImplemented", format!("the simulated API server does not know {what}"), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    fn kind(plural: &str) -> ServedKind {
        kinds::built_in().into_iter().find(|kind| kind.plural == plural).unwrap()
    }

    fn text(failure: &Failure) -> &str {
        std::str::from_utf8(&failure.body).unwrap()
    }

    #[test]
    fn status_bodies_are_those_of_the_real_server() {
        let table = [
            (
                Failure::not_found(&kind("deployments"), "d"),
                404,
                concat!(
                    r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"deployments.apps \"d\" not found","#,
                    r#""reason":"NotFound","details":{"name":"d","group":"apps","kind":"deployments"},"code":404}"#,
                    "\n"
                ),
            ),
            (
                Failure::unknown_resource(),
                404,
                concat!(
                    r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server could not find the requested resource","#,
                    r#""reason":"NotFound","details":{},"code":404}"#,
                    "\n"
                ),
            ),
            (
                Failure::version_on_create(),
                500,
                concat!(
                    r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","#,
                    r#""message":"resourceVersion should not be set on objects to be created","code":500}"#,
                    "\n"
                ),
            ),
            (Failure::page_not_found(), 404, "404 page not found\n"),
        ];
        for (failure, code, body) in table {
            assert_eq!((failure.code, text(&failure)), (code, body));
        }
    }

    #[test]
    fn equal_findings_appear_once_in_the_message_and_each_time_in_the_causes() {
        let cause = Cause::required("spec.selector", "");
        let other = Cause::invalid("spec.replicas", &(-1).into(), "must be greater than or equal to 0");

        let one = Failure::invalid(&kind("deployments"), "d", vec![cause.clone(), cause.clone()]);
        let two = Failure::invalid(&kind("deployments"), "d", vec![cause, other]);

        assert!(text(&one).contains(r#"Deployment.apps \"d\" is invalid: spec.selector: Required value","#));
        assert_eq!(text(&one).matches("FieldValueRequired").count(), 2);
        assert!(text(&two).contains(
            r"is invalid: [spec.selector: Required value, spec.replicas: Invalid value: -1: must be greater than or equal to 0]"
        ));
    }

    #[test]
    fn future_version_timeout_says_when_to_come_back() {
        let failure = Failure::version_in_future(1269, 269);

        assert_eq!((failure.code, failure.retry_after), (504, Some(1)));
        assert!(text(&failure).contains(r#""message":"Timeout: Too large resource version: 1269, current: 269""#));
        assert!(text(&failure).contains(
            r#""details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1}"#
        ));
    }
}
