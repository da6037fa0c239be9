//! `seed-backupbuckets-check`: whether the BackupBuckets of a Seed work (spec 83 B).

use std::collections::BTreeMap;

use kit::quote::cut_within;
use serde_json::Value;

use super::{
    check::{self, CheckDefinition},
    judgement::{Judgement, LONGEST_TEXT},
};
use crate::{
    actors::controller_manager::{
        context::{GardenContext, Registration, StartControllers},
        fields::text,
    },
    api::{config::controller_manager::Config, kinds, meta::conditions::ConditionStatus},
};

const NAME: &str = "seed-backupbuckets-check"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

/// What counts of a BackupBucket: the description of its error, if it has one.
pub type BucketFacts = Option<Box<str>>;

/// How BackupBuckets are checked.
pub static CHECK: CheckDefinition<BucketFacts> = CheckDefinition {
    controller: NAME,
    condition: "BackupBucketsReady",
    kind: kinds::BACKUP_BUCKET,
    seed: |bucket| text(bucket, "/spec/seedName"),
    facts,
    judge,
};

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    Some(check::setup(&CHECK, &config.controllers.seed_backup_buckets_check, ctx))
}

/// `lastError: {}` is an error with an empty description.
fn facts(bucket: &Value) -> BucketFacts {
    let error = bucket.pointer("/status/lastError").filter(|error| !error.is_null())?;
    Some(cut_within(LONGEST_TEXT, text(error, "/description")).into())
}

fn judge(buckets: &BTreeMap<String, BucketFacts>) -> Judgement {
    if buckets.is_empty() {
        let message = "Backup Buckets are gone.";
        return Judgement::bad(ConditionStatus::Unknown, "BackupBucketsGone", message, std::iter::empty());
    }
    let mut broken = buckets
        .iter()
        .filter_map(|(name, error)| Some(format!("\n* Name: {name}, Error: {}", error.as_ref()?)))
        .peekable();
    if broken.peek().is_none() {
        return Judgement::good("BackupBucketsAvailable", "Backup Buckets are available.");
    }
    let text = "The following BackupBuckets have issues:";
    Judgement::bad(ConditionStatus::False, "BackupBucketsError", text, broken)
}
