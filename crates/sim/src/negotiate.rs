//! `Accept`: the form of the answer that a client wants.

use super::status::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Full,
    /// `PartialObjectMetadata` of one object, or of the objects of a watch.
    Metadata,
    /// `PartialObjectMetadataList` of a list.
    MetadataList,
    Table,
}

struct Alternative<'a> {
    media_type: &'a str,
    form: Option<&'a str>,
    group: Option<&'a str>,
    version: Option<&'a str>,
}

/// Returns the first alternative that the simulator knows. If only the real server knows one, fails with 501.
pub(super) fn negotiate(accept: &str) -> Result<Asked, Failure> {
    let mut beyond_the_simulator = false;
    for alternative in alternatives(accept) {
        match (alternative.media_type, alternative.form) {
            ("application/json" | "*/*" | "application/*", None) => return Ok(Asked::Full),
            ("application/json", Some("PartialObjectMetadata")) if alternative.is_meta() => return Ok(Asked::Metadata),
            ("application/json", Some("PartialObjectMetadataList")) if alternative.is_meta() => {
                return Ok(Asked::MetadataList);
            }
            ("application/json", Some("Table")) if alternative.is_meta() => return Ok(Asked::Table),
            ("application/yaml" | "application/vnd.kubernetes.protobuf" | "application/cbor", _) => {
                beyond_the_simulator = true;
            }
            _ => {}
        }
    }
    if accept.trim().is_empty() {
        Ok(Asked::Full)
    } else if beyond_the_simulator {
        Err(Failure::not_simulated("answers as YAML, Protobuf or CBOR"))
    } else {
        Err(not_acceptable())
    }
}

/// Returns true for the aggregated discovery document, false for the plain one.
pub(super) fn negotiate_discovery(accept: &str) -> Result<bool, Failure> {
    for alternative in alternatives(accept) {
        match (alternative.media_type, alternative.form) {
            ("application/json" | "*/*" | "application/*", None) => return Ok(false),
            ("application/json", Some("APIGroupDiscoveryList"))
                if alternative.group == Some("apidiscovery.k8s.io") && alternative.version == Some("v2") =>
            {
                return Ok(true);
            }
            _ => {}
        }
    }
    if accept.trim().is_empty() { Ok(false) } else { Err(not_acceptable()) }
}

fn not_acceptable() -> Failure {
    Failure::not_acceptable(
        "only the following media types are accepted: application/json, application/yaml, \
         application/vnd.kubernetes.protobuf",
    )
}

impl Alternative<'_> {
    fn is_meta(&self) -> bool {
        self.group == Some("meta.k8s.io") && matches!(self.version, Some("v1" | "v1beta1"))
    }
}

fn alternatives(accept: &str) -> impl Iterator<Item = Alternative<'_>> {
    accept.split(',').map(|text| {
        let mut parts = text.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let mut alternative = Alternative { media_type, form: None, group: None, version: None };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name {
                "as" => alternative.form = Some(value),
                "g" => alternative.group = Some(value),
                "v" => alternative.version = Some(value),
                _ => {}
            }
        }
        alternative
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_header_takes_the_first_known_alternative() {
        let meta = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

        assert_eq!(negotiate("").unwrap(), Asked::Full);
        assert_eq!(negotiate("application/json").unwrap(), Asked::Full);
        assert_eq!(negotiate(meta).unwrap(), Asked::Metadata);
        assert_eq!(negotiate(&format!("text/html, {meta}, application/json")).unwrap(), Asked::Metadata);
        assert_eq!(
            negotiate("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").unwrap(),
            Asked::MetadataList
        );
        assert_eq!(negotiate("application/json;as=Table;g=meta.k8s.io;v=v1,application/json").unwrap(), Asked::Table);
    }

    #[test]
    fn accept_header_of_unknown_types_is_406_and_of_unsimulated_types_501() {
        assert_eq!(negotiate("text/html").unwrap_err().code, 406);
        assert_eq!(negotiate("application/yaml").unwrap_err().code, 501);
    }

    #[test]
    fn accept_header_knows_only_version_2_of_aggregated_discovery() {
        let aggregated =
            |version| format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList");

        assert!(negotiate_discovery(&aggregated("v2")).unwrap());
        assert!(!negotiate_discovery("application/json").unwrap());
        assert_eq!(negotiate_discovery(&aggregated("v2beta1")).unwrap_err().code, 406);
    }
}
