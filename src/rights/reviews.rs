//! Asks an API server whether the process has its rights, by SelfSubjectAccessReviews.

use std::collections::BTreeMap;

use cluster::{ApiError, Cluster, Context};
use futures::{StreamExt as _, stream};
use serde_json::Value;

use super::{NeededRight, Right, RightObject};
use crate::api::kinds::SELF_SUBJECT_ACCESS_REVIEW;

/// Reviews that are under way at the same time.
const AT_ONCE: usize = 4;
const ANY: &str = "*";

/// What is known of the rights in a cluster. An error costs no answer that came before.
pub(crate) struct Reviews<'a> {
    needed: Vec<&'a NeededRight>,
    answers: BTreeMap<&'a Right, bool>,
    /// Whether everything is allowed in a namespace; `None` stands for all of them. One review then answers for many.
    everything: BTreeMap<Option<&'a str>, bool>,
}

impl<'a> Reviews<'a> {
    /// Nothing is asked yet. `needed` may have rights in other clusters.
    pub(crate) fn new(needed: &'a [NeededRight], cluster: &str) -> Self {
        let needed = needed.iter().filter(|needed| needed.right.cluster == cluster).collect();
        Self { needed, answers: BTreeMap::new(), everything: BTreeMap::new() }
    }

    /// Asks for what is not known yet. Fails with the first error.
    pub(crate) async fn go_on(&mut self, cluster: &Cluster, context: &Context) -> Result<(), ApiError> {
        let ask = async |right: &Right| {
            let answer = cluster.review(context, &SELF_SUBJECT_ACCESS_REVIEW, &right.review()).await?;
            Ok::<bool, ApiError>(answer.pointer("/status/allowed") == Some(&Value::Bool(true)))
        };
        for needed in &self.needed {
            let namespace = needed.right.namespace.as_deref();
            if is_resource(&needed.right) && !self.everything.contains_key(&namespace) {
                let is_allowed = ask(&everything(&needed.right)).await?;
                self.everything.insert(namespace, is_allowed);
            }
        }
        let open: Vec<&Right> =
            self.needed.iter().map(|needed| &needed.right).filter(|right| self.answer(right).is_none()).collect();
        let mut answers = stream::iter(open).map(async |right| (right, ask(right).await)).buffer_unordered(AT_ONCE);
        while let Some((right, answer)) = answers.next().await {
            self.answers.insert(right, answer?);
        }
        Ok(())
    }

    /// Returns each right with whether it is granted; `None`: that is not known.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'a NeededRight, Option<bool>)> {
        self.needed.iter().map(|needed| (*needed, self.answer(&needed.right)))
    }

    fn answer(&self, right: &Right) -> Option<bool> {
        let is_everything = is_resource(right) && self.everything.get(&right.namespace.as_deref()) == Some(&true);
        if is_everything { Some(true) } else { self.answers.get(right).copied() }
    }
}

fn is_resource(right: &Right) -> bool {
    matches!(right.object, RightObject::Resource { .. })
}

/// All verbs on all resources of all groups, in the namespace of a right.
fn everything(right: &Right) -> Right {
    let object = RightObject::Resource { group: ANY.to_owned(), resource: ANY.to_owned(), name: None };
    Right { object, verb: ANY.to_owned(), ..right.clone() }
}
