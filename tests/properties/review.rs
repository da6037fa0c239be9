//! Reviews (spec 50 §2).

use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};

use crate::{
    checks::review::{Case, check},
    json_value,
};

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn reviews_of_any_object_get_an_answer(review in review()) {
        check(&Case { content_type: "application/json".to_owned(), body: review.to_string().into_bytes() });
    }

    #[test]
    fn reviews_with_any_body_get_an_answer(
        content_type in select(vec!["application/json", "text/plain", ""]), body in json_value(), cut in 0..40_usize,
    ) {
        let mut body = body.to_string().into_bytes();
        body.truncate(cut);
        check(&Case { content_type: content_type.to_owned(), body });
    }
}

fn review() -> impl Strategy<Value = Value> {
    let kind = select(vec![
        json!({ "group": "", "version": "v1", "kind": "Pod" }),
        json!({ "group": "apps", "version": "v1", "kind": "Deployment" }),
        json!({ "group": "autoscaling", "version": "v2", "kind": "HorizontalPodAutoscaler" }),
    ]);
    let operation = select(vec!["CREATE", "UPDATE", "DELETE"]);
    let namespace = select(vec!["ns", "absent"]);
    (
        kind,
        operation,
        namespace,
        json_value(),
        json_value(),
        json_value(),
        select(vec!["name", "uid", "kind", "unknown"]),
    )
        .prop_map(|(kind, operation, namespace, metadata, spec, any, field)| {
            let mut request = json!({
                "uid": "7c1f", "kind": kind, "operation": operation, "namespace": namespace, "name": "a",
                "object": { "metadata": metadata, "spec": spec },
            });
            request[field] = any;
            json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request })
        })
}
