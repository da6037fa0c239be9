//! The version of an API server.

use kit::Deadline;
use serde_json::Value;

use super::{
    ApiError, Cluster,
    transport::{Admission, Call},
};

impl Cluster {
    /// Returns `gitVersion` of `GET /version`, e.g. `v1.32.0`; empty if the answer has none. It passes by the request
    /// scheduler.
    pub async fn git_version(&self, deadline: Deadline) -> Result<String, ApiError> {
        let admit = async || Ok(Admission::default());
        let answer = self.transport().perform(&Call::read("/version".into()), deadline, admit).await?.json()?;
        Ok(answer.get("gitVersion").and_then(Value::as_str).unwrap_or_default().to_owned())
    }
}
