//! Which requests are recognized as those of gardenlets and of gardenadm (spec 81 B.3). Pure.

use super::request::GardenletRequest;

/// Prefix of the common name of a Seed's gardenlet, and of its username.
pub const SEED: &str = "gardener.cloud:system:seed:";
/// Prefix of the common name of a self-hosted Shoot's gardenlet.
pub const SHOOT: &str = "gardener.cloud:system:shoot:";
/// Prefix of the common name of gardenadm.
pub const GARDENADM: &str = "gardener.cloud:gardenadm:shoot:";

const SEEDS: &str = "gardener.cloud:system:seeds";
const SHOOTS: &str = "gardener.cloud:system:shoots";
const USAGES: [&str; 3] = ["key encipherment", "digital signature", "client auth"];

/// A certificate that a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certificate {
    /// Of the gardenlet of a Seed.
    Seed,
    /// Of the gardenlet of a self-hosted Shoot, or of gardenadm for it.
    Shoot,
}

/// What a request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recognized {
    /// It fulfils all requirements of this certificate.
    Certificate(Certificate),
    /// It fulfils those of none.
    Nothing(Reasons),
}

/// The first requirement of each certificate that a request does not fulfil.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reasons {
    seed: String,
    shoot: String,
    gardenadm: String,
}

/// What is required of a certificate.
struct Requirements {
    organization: &'static str,
    prefix: &'static str,
    /// What must follow the prefix, for the text about it.
    structure: &'static str,
    is_structure: fn(&str) -> bool,
}

const OF_SEED: Requirements =
    Requirements { organization: SEEDS, prefix: SEED, structure: "<name>", is_structure: |rest| !rest.is_empty() };
const OF_SHOOT: Requirements = Requirements {
    organization: SHOOTS,
    prefix: SHOOT,
    structure: "<namespace>:<name>",
    is_structure: is_namespace_and_name,
};
const OF_GARDENADM: Requirements = Requirements { prefix: GARDENADM, ..OF_SHOOT };

impl Certificate {
    /// The subresource that the user must be allowed to create.
    pub fn subresource(self) -> &'static str {
        match self {
            Self::Seed => "seedclient",
            Self::Shoot => "shootclient",
        }
    }
}

/// Recognizes a request. The gardenlet of a Seed may ask for its own certificate only (B.5).
pub fn recognize(request: &GardenletRequest) -> Recognized {
    let seed = OF_SEED.check(request).and_then(|()| is_own(request));
    let (shoot, gardenadm) = (OF_SHOOT.check(request), OF_GARDENADM.check(request));
    match (seed, shoot, gardenadm) {
        (Ok(()), _, _) => Recognized::Certificate(Certificate::Seed),
        (_, Ok(()), _) | (_, _, Ok(())) => Recognized::Certificate(Certificate::Shoot),
        (Err(seed), Err(shoot), Err(gardenadm)) => Recognized::Nothing(Reasons { seed, shoot, gardenadm }),
    }
}

impl Requirements {
    /// Fails with the first requirement that a request does not fulfil.
    fn check(&self, request: &GardenletRequest) -> Result<(), String> {
        let Self { organization, prefix, structure, is_structure } = self;
        let certificate = &request.certificate;
        if certificate.organizations != [*organization] {
            return Err(format!("subject's organization is not set to [{organization}]"));
        }
        let Some(rest) = certificate.common_name.strip_prefix(prefix) else {
            return Err(format!("subject's common name does not start with \"{prefix}\""));
        };
        if !is_structure(rest) {
            return Err(format!("subject's common name must follow this structure: \"{prefix}{structure}\""));
        }
        let has_names = !certificate.dns_names.is_empty() || !certificate.ip_addresses.is_empty();
        if has_names || certificate.other_names > 0 {
            return Err("DNSNames, EmailAddresses and IPAddresses fields must be empty".to_owned());
        }
        if request.usages.len() != USAGES.len() || !USAGES.iter().all(|usage| request.usages.contains(*usage)) {
            return Err(format!("key usages are not set to [{}]", USAGES.join(" ")));
        }
        Ok(())
    }
}

impl Reasons {
    /// Returns the reasons as further lines of an actor.
    pub(super) fn lines(&self) -> Vec<(String, String)> {
        let Self { seed, shoot, gardenadm } = self;
        let all =
            [("No gardenlet of a Seed", seed), ("No gardenlet of a Shoot", shoot), ("Not of gardenadm", gardenadm)];
        all.map(|(label, reason)| (label.to_owned(), reason.clone())).into()
    }

    /// Logs why a request is left alone: at info if its organization is that of gardenlets.
    pub(super) fn log(&self, request: &GardenletRequest) {
        const TEXT: &str =
            "Ignoring CSR, as it does not match the requirements for a seed client or a self-hosted shoot client";
        let Self { seed, shoot, gardenadm } = self;
        let is_ours = request.certificate.organizations.iter().any(|name| [SEEDS, SHOOTS].contains(&name.as_str()));
        if is_ours {
            tracing::info!(
                reasonSeedCheck = seed,
                reasonShootCheck = shoot,
                reasonGardenadmCheck = gardenadm,
                "{TEXT}"
            );
        } else {
            tracing::debug!(
                reasonSeedCheck = seed,
                reasonShootCheck = shoot,
                reasonGardenadmCheck = gardenadm,
                "{TEXT}"
            );
        }
    }
}

fn is_own(request: &GardenletRequest) -> Result<(), String> {
    if request.username.starts_with(SEED) && request.username != request.certificate.common_name {
        return Err("subject's common name is not the name of the requesting seed".to_owned());
    }
    Ok(())
}

fn is_namespace_and_name(rest: &str) -> bool {
    rest.split_once(':')
        .is_some_and(|(namespace, name)| !namespace.is_empty() && !name.is_empty() && !name.contains(':'))
}
