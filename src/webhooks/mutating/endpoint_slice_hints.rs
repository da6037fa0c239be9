//! `endpoint-slice-hints`: the own zone as the hint of each endpoint (spec 50 §13).

use serde_json::{Value, json};

use super::{Mutation, Mutator, Request};
use crate::webhooks::{
    fields::{self, Field, Type},
    view::{Failure, View},
};

/// The path on which it is served.
pub const PATH: &str = "/webhooks/endpoint-slice-hints";

const FIELDS: [Field; 2] = [("endpoints[].zone", Type::Text), ("endpoints[].hints", Type::Map)];

/// Keeps traffic in its zone: each endpoint serves clients in its own zone.
#[derive(Debug, Clone, Copy)]
pub struct EndpointSliceHints;

impl Mutator for EndpointSliceHints {
    fn mutate(&self, slice: &mut Value, _: &Request<'_>, _: &dyn View) -> Result<Mutation, Failure> {
        fields::check(slice, &FIELDS)?;
        fields::each_mut(slice, &["endpoints"], |endpoint| {
            let zone = fields::text(endpoint, &["zone"])?.unwrap_or_default();
            if !zone.is_empty() {
                let hints = json!({ "forZones": [{ "name": zone }] });
                fields::map_mut(endpoint, &[])?.insert("hints".to_owned(), hints);
            }
            Ok(())
        })?;
        Ok(Mutation::Done)
    }

    fn takes(&self) -> Option<(&'static str, &'static str)> {
        Some(("discovery.k8s.io", "EndpointSlice"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhooks::testing::{TestView, changes, failure, leaves};

    /// spec 50 §13, scenarios 40 and 41
    #[test]
    fn hint_of_each_endpoint_is_its_own_zone() {
        let view = TestView::new();

        changes(
            &EndpointSliceHints,
            &view,
            "
endpoints:
- {addresses: [10.0.1.4], zone: eu-1a}
- {addresses: [10.0.2.4], zone: eu-1b, hints: {forZones: [{name: eu-1a}]}}
- {addresses: [10.0.3.4]}
---
endpoints:
- {addresses: [10.0.1.4], zone: eu-1a, hints: {forZones: [{name: eu-1a}]}}
- {addresses: [10.0.2.4], zone: eu-1b, hints: {forZones: [{name: eu-1b}]}}
- {addresses: [10.0.3.4]}
",
        );
        assert!(view.reads().is_empty());
    }

    /// spec 50 §13, scenario 41
    #[test]
    fn hints_of_other_zones_are_replaced_as_a_whole() {
        for hints in
            ["null", "{}", "{forZones: [{name: c}]}", "{forZones: [{name: a}, {name: b}]}", "{forNodes: [{name: n}]}"]
        {
            let before = format!("endpoints: [{{zone: a, hints: {hints}}}]");
            let after = "endpoints: [{zone: a, hints: {forZones: [{name: a}]}}]";
            changes(&EndpointSliceHints, &TestView::new(), &format!("{before}\n---\n{after}"));
        }
    }

    /// spec 50 §13
    #[test]
    fn hints_of_an_endpoint_without_a_zone_stay() {
        for endpoints in [
            "null",
            "[]",
            "[{addresses: [a]}]",
            "[{zone: null, hints: {forZones: [{name: c}]}}]",
            "[{zone: '', hints: {forZones: [{name: c}]}}]",
            "[{deprecatedTopology: {topology.kubernetes.io/zone: a}}]",
        ] {
            leaves(&EndpointSliceHints, &TestView::new(), &format!("endpoints: {endpoints}"));
        }
        leaves(&EndpointSliceHints, &TestView::new(), "{addressType: IPv4}");
    }

    /// spec 50 §13
    #[test]
    fn conditions_ports_and_unknown_fields_stay() {
        changes(
            &EndpointSliceHints,
            &TestView::new(),
            "
ports: [{port: 1}]
endpoints: [{zone: a, conditions: {ready: false, terminating: true}, futureField: 7}]
---
ports: [{port: 1}]
endpoints:
- zone: a
  conditions: {ready: false, terminating: true}
  futureField: 7
  hints: {forZones: [{name: a}]}
",
        );
    }

    /// spec 50 §2.2 row 7
    #[test]
    fn wrong_type_is_an_error_that_names_the_element() {
        for (slice, message) in [
            ("endpoints: {}", "endpoints: expected a list, found a map"),
            ("endpoints: [{}, a]", "endpoints[1]: expected a map, found a string"),
            ("endpoints: [{}, {zone: 1}]", "endpoints[1].zone: expected a string, found a number"),
            ("endpoints: [{hints: []}]", "endpoints[0].hints: expected a map, found a list"),
        ] {
            let expected = Failure::Errored { code: 400, message: message.to_owned() };
            assert_eq!(failure(&EndpointSliceHints, &TestView::new(), slice), expected);
        }
    }
}
