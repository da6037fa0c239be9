//! Names of Services in Istio.

use cluster::object::NamespacedName;

const DOMAIN: &str = ".svc.cluster.local"; // the cluster domain (spec 40 §2.4)

/// Returns the Service of a host `<service>.<namespace>.svc.cluster.local` (spec 40 §7.10 H, spec 42 §5.3).
pub fn service_of(host: &str) -> Option<NamespacedName> {
    let (service, namespace) = host.strip_suffix(DOMAIN)?.split_once('.')?;
    let is_one = !service.is_empty() && !namespace.is_empty() && !namespace.contains('.');
    is_one.then(|| NamespacedName::new(namespace, service))
}
