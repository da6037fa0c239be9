//! How Istio names Services.

use cluster::object::NamespacedName;

/// The domain of clusters (spec 40 §2.4).
const DOMAIN: &str = ".svc.cluster.local";

/// The Service of a full host name, `<service>.<namespace>.svc.cluster.local`; `None` for everything else (spec 40 §7.10 H, spec 42
/// §5.3).
pub fn service_of(host: &str) -> Option<NamespacedName> {
    let (service, namespace) = host.strip_suffix(DOMAIN)?.split_once('.')?;
    let is_one = !service.is_empty() && !namespace.is_empty() && !namespace.contains('.');
    is_one.then(|| NamespacedName::new(namespace, service))
}
