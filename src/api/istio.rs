//! Names of Services in Istio.

use cluster::object::NamespacedName;

/// The cluster domain (spec 40 §2.4).
const DOMAIN: &str = ".svc.cluster.local";

/// Returns the Service of the host `<service>.<namespace>.svc.cluster.local`, else `None` (spec 40 §7.10 H, spec 42
/// §5.3).
pub fn service_of(host: &str) -> Option<NamespacedName> {
    let (service, namespace) = host.strip_suffix(DOMAIN)?.split_once('.')?;
    let is_one = !service.is_empty() && !namespace.is_empty() && !namespace.contains('.');
    is_one.then(|| NamespacedName::new(namespace, service))
}
