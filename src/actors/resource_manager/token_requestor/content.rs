//! The content of the Secret that holds a token (spec 30 §5.1 d to f, §5.6, §7): reads and places the token.

use base64::{Engine, prelude::BASE64_STANDARD};
use cluster::object;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    Problem,
    kubeconfig::{Kubeconfig, KubeconfigError},
    renewal,
};
use crate::api::resources::keys::{DATA_KEY_CA_BUNDLE, DATA_KEY_KUBECONFIG, DATA_KEY_TOKEN, TOKEN_RENEW_TIMESTAMP};

/// A merge patch of `data`: base64 values to set, or null to remove the key.
pub type Changes = Map<String, Value>;

/// The token found in a holder.
#[derive(Clone, PartialEq, Eq)]
pub enum Held {
    /// There is no usable token; the text is the reason.
    Nothing(&'static str),
    /// A token that may be good.
    Token(String),
}

fn decoded(secret: &Value, key: &str) -> Option<Vec<u8>> {
    let text = secret.get("data")?.get(key)?.as_str()?;
    Some(BASE64_STANDARD.decode(text).unwrap_or_default())
}

/// Reads the kubeconfig of a holder; `None` in token mode. A key without value is an empty kubeconfig.
fn kubeconfig(holder: &Value) -> Option<Result<Kubeconfig, KubeconfigError>> {
    holder.get("data")?.get(DATA_KEY_KUBECONFIG)?;
    Some(Kubeconfig::read(&decoded(holder, DATA_KEY_KUBECONFIG).unwrap_or_default()))
}

/// Reads the token (spec 30 §5.1 d to f); `ca` is the wanted bundle, if any. Fails if the kubeconfig is unusable.
pub fn held(holder: &Value, ca: Option<&[u8]>) -> Result<Held, Problem> {
    let no_token = |error: KubeconfigError| {
        Problem::Unusable(format!("could not check whether token exists in secret data: {error}"))
    };
    let no_ca = |error: KubeconfigError| {
        Problem::Unusable(format!("could not check whether the caBundle is up to date: {error}"))
    };
    let mut kubeconfig = kubeconfig(holder).transpose().map_err(no_token)?;
    let token = match &mut kubeconfig {
        Some(kubeconfig) => kubeconfig.token().map_err(no_token)?.to_owned(),
        None => String::from_utf8(decoded(holder, DATA_KEY_TOKEN).unwrap_or_default()).unwrap_or_default(),
    };
    if token.is_empty() {
        return Ok(Held::Nothing("the token is missing"));
    }
    if let Some(ca) = ca {
        let held = match &mut kubeconfig {
            // Spec 30 §5.1 f and §7 also compare with an empty bundle. But an empty bundle is never written (§6
            // rule 5), so a foreign CA would stay outdated, and each check would cost a token.
            Some(_) if ca.is_empty() => Vec::new(),
            Some(kubeconfig) => kubeconfig.ca().map_err(no_ca)?,
            None => decoded(holder, DATA_KEY_CA_BUNDLE).unwrap_or_default(),
        };
        if held != ca {
            return Ok(Held::Nothing("the CA bundle is outdated"));
        }
    }
    Ok(Held::Token(token))
}

/// Returns the changes that put a token and an optional CA bundle into a holder (spec 30 §5.6, §6). In token mode
/// `None` removes the bundle. Fails if the kubeconfig is unusable.
pub fn placed(holder: &Value, token: &str, ca: Option<&[u8]>) -> Result<Changes, Problem> {
    let failed = |error: KubeconfigError| Problem::Unusable(format!("could not update Secret with token: {error}"));
    let mut changes = Changes::new();
    let mut set = |key: &str, value: &[u8]| changes.insert(key.to_owned(), BASE64_STANDARD.encode(value).into());
    if let Some(kubeconfig) = kubeconfig(holder) {
        let mut kubeconfig = kubeconfig.map_err(failed)?;
        kubeconfig.set_token(token).map_err(failed)?;
        if let Some(ca) = ca {
            kubeconfig.set_ca(ca).map_err(failed)?;
        }
        set(DATA_KEY_KUBECONFIG, kubeconfig.write().map_err(failed)?.as_bytes());
        return Ok(changes);
    }
    set(DATA_KEY_TOKEN, token.as_bytes());
    match ca {
        Some(ca) => drop(set(DATA_KEY_CA_BUNDLE, ca)),
        None => changes.extend(removed(holder, &[DATA_KEY_CA_BUNDLE])),
    }
    Ok(changes)
}

/// Returns the changes of a Secret whose token is stored in another Secret (spec 30 T5).
pub fn depopulated(secret: &Value) -> Changes {
    removed(secret, &[DATA_KEY_TOKEN, DATA_KEY_CA_BUNDLE, DATA_KEY_KUBECONFIG])
}

fn removed(secret: &Value, keys: &[&str]) -> Changes {
    let is_there = |key: &&&str| secret.get("data").is_some_and(|data| data.get(**key).is_some());
    keys.iter().filter(is_there).map(|key| ((*key).to_owned(), Value::Null)).collect()
}

/// Returns the merge patch of the source Secret, bound to the version that was read (spec 30 §5.6, T1).
pub fn patch(secret: &Value, renewal: Timestamp, changes: Changes) -> Value {
    let version = cluster::object::resource_version(secret);
    let annotations = json!({ TOKEN_RENEW_TIMESTAMP: renewal::text(renewal) });
    let mut patch = json!({ "metadata": { "resourceVersion": version, "annotations": annotations } });
    if !changes.is_empty() {
        *object::field_mut(&mut patch, &["data"]) = changes.into();
    }
    patch
}

/// Returns the target Secret to write, or `None` if nothing changes. `live` is null if it does not exist.
pub fn target(live: &Value, name: &cluster::object::NamespacedName, changes: &Changes) -> Option<Value> {
    let mut secret = live.clone();
    if live.is_null() {
        secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": name.namespace, "name": name.name },
        });
    }
    let data = object::field_mut(&mut secret, &["data"]);
    if !data.is_object() {
        *data = json!({});
    }
    for (key, value) in changes {
        match (value, data.as_object_mut()) {
            (Value::Null, Some(data)) => drop(data.remove(key)),
            (value, Some(data)) => drop(data.insert(key.clone(), value.clone())),
            (_, None) => {}
        }
    }
    (secret != *live).then_some(secret)
}
