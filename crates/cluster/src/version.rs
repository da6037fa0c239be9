//! The version of an API server.

use kit::Deadline;
use serde_json::Value;

use super::{ApiError, Cluster, transport::Call};

impl Cluster {
    /// Returns `gitVersion` of `GET /version`, e.g. `v1.32.0`; empty if the answer has none. It passes by the request
    /// scheduler.
    pub async fn git_version(&self, deadline: Deadline) -> Result<String, ApiError> {
        let answer = self.transport().perform_at_once(&Call::read("/version".into()), deadline).await?.json()?;
        Ok(answer.get("gitVersion").and_then(Value::as_str).unwrap_or_default().to_owned())
    }
}
