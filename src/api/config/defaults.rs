//! Defaults that decoding cannot set (spec 70 §2 rule 5). A required field that is zero counts as absent, because
//! deployers render unset fields as zeros; an optional field keeps its zero. All other defaults stand at the fields.

use super::file::ConfigFile;

pub(super) fn apply(file: &mut ConfigFile) {
    let default = ConfigFile::default();
    zero(&mut file.log_level, default.log_level);
    zero(&mut file.log_format, default.log_format);

    for connection in [&mut file.source, &mut file.target] {
        zero(&mut connection.qps, default.source.qps);
        zero(&mut connection.burst, default.source.burst);
        let namespace = std::mem::take(&mut connection.namespace);
        if !namespace.is_empty() {
            connection.namespaces.push(namespace);
        }
    }

    let election = &mut file.leader_election;
    zero(&mut election.lease_duration, default.leader_election.lease_duration);
    zero(&mut election.renew_deadline, default.leader_election.renew_deadline);
    zero(&mut election.retry_period, default.leader_election.retry_period);
    zero(&mut election.resource_lock, default.leader_election.resource_lock);
    zero(&mut election.resource_name, default.leader_election.resource_name);

    zero(&mut file.server.webhooks.port, default.server.webhooks.port);
    zero(&mut file.server.health_probes.port, 8081); // both have the same type, which has no default port
    zero(&mut file.server.metrics.port, 8080);
}

fn zero<T: Default + PartialEq>(field: &mut T, default: T) {
    if *field == T::default() {
        *field = default;
    }
}
