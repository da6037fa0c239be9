//! DaemonSets. The number of ready Pods does not matter: Nodes come and go.

use serde_json::Value;

use crate::actors::resource_manager::health::fields::{Check, Trouble, at, bad, generation_observed, number, text};

pub(super) fn check(object: &Value) -> Check {
    generation_observed(object)?;
    let desired = number(object, "status.desiredNumberScheduled")?;
    let current = number(object, "status.currentNumberScheduled")?;
    if current < desired {
        return bad(format!("not enough scheduled pods ({current}/{desired})"));
    }
    let misscheduled = number(object, "status.numberMisscheduled")?;
    if misscheduled > 0 {
        return bad(format!("misscheduled pods found ({misscheduled})"));
    }
    let unavailable = number(object, "status.numberUnavailable")?;
    if number(object, "status.updatedNumberScheduled")? < desired {
        let max = max_unavailable(object, desired)?;
        if i128::from(unavailable) > max {
            return bad(format!(
                "too many unavailable pods found ({unavailable}/{current}, only max. {max} unavailable pods allowed)"
            ));
        }
    } else if unavailable > 0 {
        return bad(format!("too many unavailable pods found ({unavailable}/{current})"));
    }
    Ok(())
}

/// Returns how many Pods may be unavailable during a roll-out; 0 for values that are not understood.
fn max_unavailable(object: &Value, desired: i64) -> Result<i128, Trouble> {
    if desired == 0 || text(object, "spec.updateStrategy.type")? != "RollingUpdate" {
        return Ok(0);
    }
    Ok(match at(object, "spec.updateStrategy.rollingUpdate.maxUnavailable")? {
        None => 0,
        Some(Value::String(share)) => percent_of(share, desired),
        Some(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => {
                let field = "spec.updateStrategy.rollingUpdate.maxUnavailable";
                return Err(Trouble::Unreadable(format!("{field} is neither an integer nor a string")));
            }
        },
    })
}

fn percent_of(share: &str, total: i64) -> i128 {
    let percent = share.strip_suffix('%').and_then(|percent| percent.parse::<i64>().ok()).unwrap_or_default();
    (i128::from(percent) * i128::from(total)).div_euclid(100)
}
