//! Labels of client pods (spec 40 §7.3, §7.4).

use super::{
    name::{self, DIGITS, short_hash},
    port::Port,
};

/// Prefix of all our keys.
pub const PREFIX: &str = "networking.resources.gardener.cloud/";
/// Prefix of client label keys.
pub const TO: &str = "networking.resources.gardener.cloud/to-";
/// The value of a client label.
pub const ALLOWED: &str = "allowed";
/// Longest key without its prefix, in bytes.
const LONGEST: usize = 63;
/// The key of a client label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(String);

/// Returns the alias, or `<service>-<protocol>-<port>` without one.
pub fn base(service: &str, alias: Option<&str>, port: &Port) -> String {
    match alias {
        Some(alias) => alias.to_owned(),
        None => format!("{service}-{}", name::of_port(port)),
    }
}

/// Returns the key for clients in the Service's namespace.
pub fn to_own(base: &str) -> Key {
    Key(format!("{TO}{base}"))
}

/// Returns the key for clients in other namespaces. An empty alias counts as an alias.
pub fn to_shared(base: &str, namespace: &str, alias: Option<&str>) -> Key {
    Key(format!("{TO}{}-{base}", alias.unwrap_or(namespace)))
}

impl Key {
    /// Returns the key before shortening.
    pub fn usual(&self) -> &str {
        &self.0
    }

    /// Returns the key as used on pods and in policies, shortened if it is too long.
    pub fn effective(&self) -> String {
        let name = &self.0[PREFIX.len()..];
        if name.len() <= LONGEST {
            return self.0.clone();
        }
        let mut end = LONGEST - DIGITS - 1;
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        format!("{PREFIX}{}-{}", &name[..end], short_hash(name))
    }

    /// Returns true if the key is too long.
    pub fn is_shortened(&self) -> bool {
        self.0.len() - PREFIX.len() > LONGEST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 40 §7.4
    #[test]
    fn label_key_that_is_too_long_is_cut_and_gets_a_hash() {
        let key = to_own("this-is-a-very-long-svc-name-which-will-exceed-max-length-tcp-5678");
        assert!(key.is_shortened());
        let expected = "to-this-is-a-very-long-svc-name-which-will-exceed-max-len-7c268";
        assert_eq!(key.effective(), format!("{PREFIX}{expected}"));
        assert_eq!(expected.len(), LONGEST);
    }

    /// spec 40 §7.3
    #[test]
    fn label_key_of_foreign_clients_contains_the_namespace_or_its_alias() {
        assert_eq!(to_own("cart-tcp-8443").effective(), format!("{TO}cart-tcp-8443"));
        assert_eq!(to_shared("cart-tcp-8443", "shop", None).effective(), format!("{TO}shop-cart-tcp-8443"));
        assert_eq!(to_shared("probes", "shop", Some("all-shops")).effective(), format!("{TO}all-shops-probes"));
        assert_eq!(to_shared("probes", "shop", Some("")).effective(), format!("{TO}-probes"));
    }
}
