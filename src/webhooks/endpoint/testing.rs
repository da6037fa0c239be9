use bytes::Bytes;
use serde_json::Value;

use super::{Authorizing, Conclusion, Endpoint as _};
use crate::webhooks::{
    authorizing::Authorizer,
    exchange::{Body, Received},
    testing::TestView,
    view::Lookup,
};

pub(in crate::webhooks) fn authorizing(authorizer: impl Authorizer + 'static) -> Authorizing {
    Authorizing { authorizer: std::sync::Arc::new(authorizer) }
}

pub(in crate::webhooks) fn received(body: impl Into<Bytes>) -> Received {
    Received { body: Body::Whole(body.into()), content_type: "application/json".to_owned() }
}

pub(in crate::webhooks) fn ask(
    authorizing: &Authorizing,
    view: &TestView,
    review: &Value,
) -> Result<Conclusion, Lookup> {
    authorizing.answer(&received(review.to_string()), view)
}

pub(in crate::webhooks) fn answer(authorizing: &Authorizing, view: &TestView, review: &Value) -> Value {
    json(&ask(authorizing, view, review).expect("no live read is needed"))
}

pub(in crate::webhooks) fn json(answer: &Conclusion) -> Value {
    assert_eq!(answer.reply.status, 200);
    serde_json::from_slice(&answer.reply.body).expect("an answer is JSON")
}

/// Returns `allow`, `deny`, `deny: reason`, `no opinion` or `error: text`. Panics for any other answer.
pub(in crate::webhooks) fn reported(answer: &Value) -> String {
    assert_eq!((&answer["spec"], &answer["metadata"]), (&serde_json::json!({}), &serde_json::json!({})));
    let status = &answer["status"];
    let flag = |field: &str| status.get(field).is_some_and(|value| value.as_bool().expect("a boolean"));
    let text = |field: &str| status.get(field).map(|value| value.as_str().expect("a text").to_owned());
    assert!(status["allowed"].is_boolean(), "{answer}");
    match (flag("allowed"), flag("denied"), text("reason"), text("evaluationError")) {
        (true, false, None, None) => "allow".to_owned(),
        (false, true, None, None) => "deny".to_owned(),
        (false, true, Some(reason), None) => format!("deny: {reason}"),
        (false, false, None, None) => "no opinion".to_owned(),
        (false, false, None, Some(error)) => format!("error: {error}"),
        _ => panic!("contradictory: {answer}"),
    }
}
