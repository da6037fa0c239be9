//! Validation of the defaulted configuration (spec 80 §5). All rules run; the order of the errors is that of the rules.

use process::config::{FieldError, check_burst, check_logging};

use super::Config;
use crate::api::config::label_selector;

pub(super) fn validate(config: &Config) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_burst(&mut errors, "gardenClientConnection", config.garden_client_connection.burst);
    config.leader_election.validate(&mut errors);
    check_logging(&mut errors, &config.log_level, &config.log_format);
    for (index, quota) in config.controllers.project.quotas.iter().enumerate() {
        let path = format!("controllers.project.quotas[{index}].projectSelector");
        label_selector::validate(&mut errors, &path, &quota.project_selector);
    }
    let workers = config.controllers.shoot_state.concurrent_syncs.written();
    if workers < 0 {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("controllers.shootState.concurrentSyncs", workers, detail));
    }
    errors
}
