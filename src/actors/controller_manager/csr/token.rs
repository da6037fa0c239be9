//! Whether a bootstrap token belongs to the self-hosted Shoot of a request (spec 81 B.4). Pure.

use kit::quote::cut_within;

use super::{
    request::GardenletRequest,
    requirements::{GARDENADM, SHOOT},
};

/// Reason to deny a request whose token does not exist.
pub const NOT_FOUND: &str = "bootstrap token secret not found";

const NO_TOKEN: &str = "CSR does not seem to be requested via a bootstrap token";
const NO_SHOOT: &str = "bootstrap token does not contain shoot metadata";
const USER: &str = "system:bootstrap:";
const GROUP: &str = "system:bootstrappers";

/// Begin of the description of a token that `gardenadm` made.
const OF_SHOOT: &str = "Used for connecting the self-hosted Shoot ";
const OF_MANAGED_SEED: &str = "seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource";
const OF_GARDENLET: &str = "seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource";
const BEGIN_OF_GARDENLET: &str =
    "A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource ";
/// Prefix of the name of the Gardenlet of a self-hosted Shoot.
const SELF_HOSTED: &str = "self-hosted-shoot-";

/// Bytes of a description in a reason.
const LONGEST_DESCRIPTION: usize = 512;

/// Returns the id of the token with which a request was made. Fails with the reason to deny the request.
pub fn id_of(request: &GardenletRequest) -> Result<&str, String> {
    let id = request.username.strip_prefix(USER).filter(|_| request.groups.iter().any(|group| group == GROUP));
    id.ok_or_else(|| NO_TOKEN.to_owned())
}

/// Checks that a token with this description belongs to the Shoot of a common name. Fails with the reason to deny the
/// request.
pub fn check(description: &str, common_name: &str) -> Result<(), String> {
    let (namespace, name) = shoot_of(description)?;
    let is_of_it = |prefix: &str| common_name == format!("{prefix}{namespace}:{name}");
    if is_of_it(SHOOT) || is_of_it(GARDENADM) {
        return Ok(());
    }
    Err(format!(
        "the common name in the certificate request ({common_name}) does not match the expected format \
         'gardener.cloud:{{system,gardenadm}}:shoot:<namespace>:<name>'"
    ))
}

/// Returns namespace and name of the Shoot that a description names.
fn shoot_of(description: &str) -> Result<(&str, &str), String> {
    let shown = || cut_within(LONGEST_DESCRIPTION, description);
    if let Some(rest) = description.strip_prefix(OF_SHOOT) {
        let Some(word) = rest.split_whitespace().next() else {
            return Err(format!("could not extract shoot meta from bootstrap token description: {}", shown()));
        };
        return match two_parts(word) {
            Some(shoot) => Ok(shoot),
            None => {
                Err(format!("could not extract shoot namespace and name from bootstrap token description: {}", shown()))
            }
        };
    }
    if description.contains(OF_MANAGED_SEED) || !description.contains(OF_GARDENLET) {
        return Err(NO_SHOOT.to_owned());
    }
    let gardenlet = description.strip_suffix('.').unwrap_or(description);
    let gardenlet = gardenlet.strip_prefix(BEGIN_OF_GARDENLET).and_then(two_parts);
    let shoot = gardenlet.and_then(|(namespace, name)| Some((namespace, name.strip_prefix(SELF_HOSTED)?)));
    shoot.ok_or_else(|| NO_SHOOT.to_owned())
}

fn two_parts(text: &str) -> Option<(&str, &str)> {
    text.split_once('/').filter(|(_, name)| !name.contains('/'))
}
