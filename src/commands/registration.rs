use std::collections::BTreeSet;

use base64::{Engine as _, prelude::BASE64_STANDARD};

use super::{CommandError, Said, input::Source, review::configured};
use crate::{
    cli::RegistrationOptions,
    producer::yaml,
    webhooks::{
        registration::{self, Circumstances, Deployment, RegisteredCluster, RegistrationEntry},
        registry,
    },
};

const WHATEVER_IS_ON: Circumstances = Circumstances {
    default_seccomp_profile: true,
    garden_is_self_hosted: true,
    bootstrapping: false,
    bin_packing: true,
    topology_aware_routing: true,
    match_label_keys_off: true,
};

pub(super) fn registration(
    options: &RegistrationOptions,
    config: Option<&Source>,
    ca: &Source,
) -> Result<Said, CommandError> {
    let place = RegisteredCluster::NAMED.iter().find(|(name, ..)| *name == options.place).map(|(_, place, _)| *place);
    let place = place.ok_or_else(|| CommandError::Usage(format!("there is no place {:?}", options.place)))?;
    if !ca.bytes.starts_with(b"-----BEGIN CERTIFICATE-----") {
        return Err(CommandError::Usage(format!("{} does not begin with a PEM certificate", ca.name)));
    }
    let ca_bundle = BASE64_STANDARD.encode(&ca.bytes);
    if options.authorizer {
        return authorizer(options, place, config, &ca_bundle);
    }
    let mut enabled = place.entries(&if config.is_some() { WHATEVER_IS_ON } else { Circumstances::default() });
    let mut said = Said::default();
    let webhooks = configured(config)?;
    let validating: BTreeSet<&str> = registry::validating(&webhooks).iter().map(|entry| entry.path).collect();
    if config.is_some() {
        let served = registry::mutating(&webhooks);
        let paths: BTreeSet<&str> = served.iter().map(|entry| entry.path).collect();
        let known: BTreeSet<&str> = enabled.iter().map(|entry| entry.path()).collect();
        let without = served.iter().filter(|entry| !known.contains(entry.path));
        said.remarks =
            without.map(|entry| format!("warning: webhooks.{} is not used with this --place", entry.key)).collect();
        if let Some(config) = config.filter(|_| registry::enabled(&webhooks).is_empty()) {
            said.remarks.push(format!("warning: {} enables no webhook", config.name));
        }
        enabled.retain(|entry: &RegistrationEntry| paths.contains(entry.path()));
    }
    let deployment = Deployment {
        mode: place.mode(),
        client: place.client(),
        prefix: options.prefix.clone(),
        namespace: options.namespace.clone(),
        enabled,
        ca_bundle,
    };
    let configurations = [
        Some(registration::configuration(&deployment)),
        registration::validating(&deployment, |path| validating.contains(path)),
    ];
    said.out = yaml::stream(&configurations.into_iter().flatten().collect::<Vec<_>>());
    Ok(said)
}

fn authorizer(
    options: &RegistrationOptions,
    place: RegisteredCluster,
    config: Option<&Source>,
    ca_bundle: &str,
) -> Result<Said, CommandError> {
    let files = registration::authorizer(place, &options.prefix, ca_bundle).ok_or_else(|| {
        let places = RegisteredCluster::NAMED.iter().filter(|(_, place, _)| place.has_authorizer());
        let places = places.map(|(name, ..)| *name).collect::<Vec<_>>().join(", ");
        CommandError::Usage(format!("the authorizer is for node agents, so --place must be one of {places}"))
    })?;
    let is_served = configured(config)?.node_agent_authorizer.on().is_some();
    let remarks = (!is_served).then(|| {
        "warning: webhooks.nodeAgentAuthorizer is not enabled, so the API server will deny what node agents request"
            .into()
    });
    Ok(Said { out: yaml::stream(&files), remarks: remarks.into_iter().collect(), ..Said::default() })
}
