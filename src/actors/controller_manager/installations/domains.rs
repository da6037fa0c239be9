//! The internal domain and the default domains of a Seed (spec 85 A.3.4). Pure. Credentials are not looked at (DEV-1).

use cluster::{object, object::NamespacedName};
use serde_json::Value;

use super::seed_facts::{Domain, SeedFacts};
use crate::actors::controller_manager::seed::secrets::roles::ROLE;

const INTERNAL: &str = "internal-domain";
const DEFAULT: &str = "default-domain";
const DOMAIN: &str = "dns.gardener.cloud/domain";
const PROVIDER: &str = "dns.gardener.cloud/provider";
const ZONE: &str = "dns.gardener.cloud/zone";
const PRIORITY: &str = "dns.gardener.cloud/domain-default-priority";

/// What counts of a Secret in the Namespace of a Seed; `None` for Secrets of other roles.
pub type DomainSecretFacts = Option<DomainSecret>;

/// A Secret that names a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainSecret {
    is_internal: bool,
    /// `Err`: what it lacks.
    domain: Result<Domain, &'static str>,
    zone: Option<Box<str>>,
    priority: i64,
}

/// The domains of a Seed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Domains {
    /// The internal domain; `None` if it is unknown.
    pub internal: Option<Domain>,
    /// The default domains, in their order.
    pub defaults: Vec<Domain>,
}

impl DomainSecret {
    /// Reads the metadata of a Secret.
    pub fn of(secret: &Value) -> DomainSecretFacts {
        let is_internal = match object::label(secret, ROLE) {
            Some(INTERNAL) => true,
            Some(DEFAULT) => false,
            Some(_) | None => return None,
        };
        let annotation = |key| object::annotation(secret, key).filter(|value| !value.is_empty());
        let annotations = secret.pointer("/metadata/annotations").and_then(Value::as_object);
        let domain = match (annotation(DOMAIN), annotation(PROVIDER)) {
            _ if annotations.is_none_or(serde_json::Map::is_empty) => Err("domain secret has no annotations"),
            (None, _) => Err("missing dns domain annotation on domain secret"),
            (_, None) => Err("missing dns provider annotation on domain secret"),
            (Some(domain), Some(provider)) => Ok(Domain { domain: domain.into(), provider: provider.into() }),
        };
        let priority = annotation(PRIORITY).and_then(|text| text.parse().ok()).unwrap_or_default();
        Some(Self { is_internal, domain, zone: annotation(ZONE).map(Box::from), priority })
    }
}

impl Domains {
    /// Returns the domains of a Seed: those of its spec, or else those of Secrets in its Namespace. Fails with the text
    /// about the Secrets.
    pub fn of<'s>(
        seed: &SeedFacts,
        secrets: impl IntoIterator<Item = (&'s NamespacedName, &'s DomainSecret)>,
    ) -> Result<Self, String> {
        let (internal, mut defaults): (Vec<_>, Vec<_>) =
            secrets.into_iter().partition(|(_, secret)| secret.is_internal);
        let internal = match (&seed.internal_domain, &*internal) {
            (Some(domain), _) => Some(domain.clone()),
            (None, []) => None,
            (None, [(name, secret)]) => {
                let domain = secret.domain.clone().map_err(|error| {
                    wrapped(
                        "internal domain",
                        &format!("error constructing internal domain from secret {name}: {error}"),
                    )
                });
                Some(domain?)
            }
            (None, _) => return Err(wrapped("internal domain", "found more than one internal domain secret")),
        };
        if !seed.default_domains.is_empty() {
            return Ok(Self { internal, defaults: seed.default_domains.to_vec() });
        }
        defaults.sort_by(|(name, secret), (other_name, other)| {
            other.priority.cmp(&secret.priority).then_with(|| name.cmp(other_name))
        });
        let domain = |(name, secret): (&NamespacedName, &DomainSecret)| {
            secret.domain.clone().map_err(|error| {
                wrapped("default domains", &format!("error constructing default domain from secret {name}: {error}"))
            })
        };
        Ok(Self { internal, defaults: defaults.into_iter().map(domain).collect::<Result<_, _>>()? })
    }
}

fn wrapped(what: &str, error: &str) -> String {
    format!("failed computing kind/types for shoots: failed to read {what} from garden cluster: {error}")
}
