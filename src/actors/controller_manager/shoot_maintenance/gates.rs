//! Feature gates and admission plugins that a Kubernetes version does not have (spec 84 C.11). Pure.

use std::{collections::BTreeMap, sync::LazyLock};

use kit::quote::{cut, quoted};
use serde_json::Value;

use super::{
    gates_table::{ADMISSION_PLUGINS, FEATURE_GATES, LAST_KNOWN_MINOR},
    update::{Remark, RemarkLevel},
    version::normalized,
};
use crate::actors::controller_manager::fields::text;

/// Names, and the minor versions of Kubernetes 1 that support them. `None`: no bound.
pub(super) struct SupportRange {
    /// The first version.
    pub(super) added: Option<u64>,
    /// The first version that does not support them any more.
    pub(super) removed: Option<u64>,
    /// Separated by spaces.
    pub(super) names: &'static str,
}

/// What has a range of supported versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SwitchKind {
    FeatureGate,
    AdmissionPlugin,
}

/// Whether a Kubernetes version has a feature gate or admission plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Support {
    Supported,
    Unsupported,
    /// The version is newer than the tables (spec 84 D-8).
    Unknown,
}

type Table = BTreeMap<&'static str, &'static SupportRange>;

static GATES: LazyLock<Table> = LazyLock::new(|| by_name(FEATURE_GATES));
static PLUGINS: LazyLock<Table> = LazyLock::new(|| by_name(ADMISSION_PLUGINS));

fn by_name(ranges: &'static [SupportRange]) -> Table {
    let names = |range: &'static SupportRange| range.names.split_whitespace().map(move |name| (name, range));
    ranges.iter().flat_map(names).collect()
}

impl SwitchKind {
    /// Returns whether a version, given as major and minor, has it (spec 84 FG-3, D-8).
    pub(super) fn support(self, name: &str, line: (u64, u64)) -> Support {
        let table = match self {
            Self::FeatureGate => &GATES,
            Self::AdmissionPlugin => &PLUGINS,
        };
        let Some(range) = table.get(name) else {
            return if line > (1, LAST_KNOWN_MINOR) { Support::Unknown } else { Support::Unsupported };
        };
        let is_added = range.added.is_none_or(|added| (1, added) <= line);
        let is_removed = range.removed.is_some_and(|removed| (1, removed) <= line);
        if is_added && !is_removed { Support::Supported } else { Support::Unsupported }
    }

    fn plural(self) -> &'static str {
        match self {
            Self::FeatureGate => "feature gates",
            Self::AdmissionPlugin => "admission plugins",
        }
    }
}

const COMPONENTS: [&str; 5] = ["kubeAPIServer", "kubeControllerManager", "kubeScheduler", "kubeProxy", "kubelet"];

/// Removes what the versions of control plane and pools do not support, and adds the texts (spec 84 FG-1, FG-2).
pub(super) fn remove_unsupported(spec: &mut Value, texts: &mut Vec<String>, remarks: &mut Vec<Remark>) {
    let control_plane = text(spec, "/kubernetes/version").to_owned();
    let mut removal = Removal { texts, remarks };
    if let Some(kubernetes) = spec.get_mut("kubernetes") {
        for component in COMPONENTS {
            if let Some(component_of_shoot) = kubernetes.get_mut(component) {
                let path = format!("spec.kubernetes.{component}.featureGates");
                removal.gates_of(component_of_shoot, &path, &control_plane);
            }
        }
    }
    let workers = spec.pointer_mut("/provider/workers").and_then(Value::as_array_mut);
    for (at, worker) in workers.into_iter().flatten().enumerate() {
        let own = text(worker, "/kubernetes/version").to_owned();
        let version = if own.is_empty() { &control_plane } else { &own };
        if let Some(kubelet) = worker.pointer_mut("/kubernetes/kubelet") {
            let path = format!("spec.provider.workers[{at}].kubernetes.kubelet.featureGates");
            removal.gates_of(kubelet, &path, version);
        }
    }
    if let Some(api_server) = spec.pointer_mut("/kubernetes/kubeAPIServer") {
        removal.plugins_of(api_server, &control_plane);
    }
}

struct Removal<'a> {
    texts: &'a mut Vec<String>,
    remarks: &'a mut Vec<Remark>,
}

/// The names at a path that are not supported.
#[derive(Default)]
struct UnsupportedNames {
    removed: Vec<String>,
    /// Names that nobody knows: the first, and how many.
    unknown: Option<(String, usize)>,
}

impl UnsupportedNames {
    /// Returns true if a name stays.
    fn keeps(&mut self, kind: SwitchKind, name: &str, line: (u64, u64)) -> bool {
        match kind.support(name, line) {
            Support::Supported => true,
            Support::Unsupported => {
                self.removed.push(name.to_owned());
                false
            }
            Support::Unknown => {
                let (_, count) = self.unknown.get_or_insert_with(|| (name.to_owned(), 0));
                *count += 1;
                true
            }
        }
    }
}

impl Removal<'_> {
    fn gates_of(&mut self, component: &mut Value, path: &str, version: &str) {
        let Some(gates) = component.get_mut("featureGates").and_then(Value::as_object_mut) else { return };
        let mut names = UnsupportedNames::default();
        let Some(line) = line_of(version) else { return };
        gates.retain(|name, _| names.keeps(SwitchKind::FeatureGate, name, line));
        let is_empty = gates.is_empty();
        self.finish(SwitchKind::FeatureGate, component, (path, "featureGates"), version, (names, is_empty));
    }

    fn plugins_of(&mut self, api_server: &mut Value, version: &str) {
        let path = "spec.kubernetes.kubeAPIServer.admissionPlugins";
        let Some(plugins) = api_server.get_mut("admissionPlugins").and_then(Value::as_array_mut) else { return };
        let mut names = UnsupportedNames::default();
        let Some(line) = line_of(version) else { return };
        plugins.retain(|plugin| {
            // An entry without a name is none that Kubernetes could have removed.
            let name = plugin.get("name").and_then(Value::as_str);
            name.is_none_or(|name| names.keeps(SwitchKind::AdmissionPlugin, name, line))
        });
        let is_empty = plugins.is_empty();
        self.finish(SwitchKind::AdmissionPlugin, api_server, (path, "admissionPlugins"), version, (names, is_empty));
    }

    /// Removes what became empty, and adds the text (spec 84 FG-4, FG-5). Unknown names are one remark (spec 84 D-8).
    fn finish(
        &mut self,
        kind: SwitchKind,
        parent: &mut Value,
        (path, field): (&str, &str),
        version: &str,
        (UnsupportedNames { mut removed, unknown }, is_empty): (UnsupportedNames, bool),
    ) {
        if let Some((first, count)) = unknown {
            let message = "Keeping unknown names because the Kubernetes version is newer than the known ones";
            let names = if count == 1 { first } else { format!("{} and {} more", cut(&first), count - 1) };
            self.remarks.push(Remark::new(RemarkLevel::Warning, message, path, &names));
        }
        if removed.is_empty() {
            return;
        }
        if is_empty && let Some(fields) = parent.as_object_mut() {
            fields.remove(field);
        }
        removed.sort_unstable();
        self.texts.push(format!(
            "Removed {} from {} because they are not supported in Kubernetes version {}: {}",
            kind.plural(),
            quoted(path),
            quoted(version),
            removed.join(", ")
        ));
    }
}

/// Returns major and minor of a normalized version.
fn line_of(version: &str) -> Option<(u64, u64)> {
    normalized(version).map(|(major, minor, _)| (major, minor))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cleaned(mut spec: Value) -> (Value, Vec<String>, usize) {
        let (mut texts, mut remarks) = (Vec::new(), Vec::new());
        remove_unsupported(&mut spec, &mut texts, &mut remarks);
        (spec, texts, remarks.len())
    }

    fn text_of(what: &str, path: &str, version: &str, names: &str) -> String {
        format!(
            "Removed {what} from \"{path}\" because they are not supported in Kubernetes version \"{version}\": {names}"
        )
    }

    /// spec 84 FG-3, appendices 1 and 2
    #[test]
    fn names_of_the_appendices_are_unique_and_ordered_by_version() {
        assert_eq!((GATES.len(), PLUGINS.len()), (305, 42));
        for (table, ranges) in [(&GATES, FEATURE_GATES), (&PLUGINS, ADMISSION_PLUGINS)] {
            let names: usize = ranges.iter().map(|range| range.names.split_whitespace().count()).sum();
            assert_eq!(names, table.len(), "each name stands once");
            let is_order = |range: &SupportRange| range.added < range.removed || range.removed.is_none();
            assert!(ranges.iter().all(is_order));
            let bounds = ranges.iter().flat_map(|range| [range.added, range.removed]).flatten();
            assert!(bounds.into_iter().all(|minor| minor <= LAST_KNOWN_MINOR));
        }
    }

    /// spec 84 FG-3, D-8
    #[test]
    fn support_ends_with_the_version_that_removed_a_name() {
        use Support::{Supported, Unknown, Unsupported};
        use SwitchKind::{AdmissionPlugin, FeatureGate};
        for (kind, name, line, expected) in [
            (FeatureGate, "CSIMigrationRBD", (1, 30), Supported),
            (FeatureGate, "CSIMigrationRBD", (1, 31), Unsupported),
            (FeatureGate, "CSIMigrationRBD", (1, 99), Unsupported),
            (FeatureGate, "CSIMigrationRBD", (2, 0), Unsupported),
            (FeatureGate, "AllBeta", (1, 17), Supported),
            (FeatureGate, "AllBeta", (1, 16), Unsupported),
            (FeatureGate, "AllBeta", (1, 99), Supported),
            (FeatureGate, "LegacySidecarContainers", (1, 33), Supported),
            (FeatureGate, "LegacySidecarContainers", (1, 32), Unsupported),
            (FeatureGate, "LegacySidecarContainers", (1, 34), Unsupported),
            (FeatureGate, "NodeSwap", (0, 0), Supported),
            (FeatureGate, "Foo", (1, 36), Unsupported),
            (FeatureGate, "Foo", (1, 37), Unknown),
            (FeatureGate, "PodSecurity", (1, 31), Unsupported),
            (AdmissionPlugin, "PersistentVolumeLabel", (1, 31), Unsupported),
            (AdmissionPlugin, "JobValidation", (1, 36), Supported),
            (AdmissionPlugin, "JobValidation", (1, 35), Unsupported),
            (AdmissionPlugin, "PodSecurity", (1, 31), Supported),
        ] {
            assert_eq!(kind.support(name, line), expected, "{name} {line:?}");
        }
    }

    /// spec 84 FG-1 to FG-5, scenario 53
    #[test]
    fn gates_and_plugins_go_with_the_version() {
        let gates = json!({ "CSIMigrationRBD": false, "AllBeta": true, "APIPriorityAndFairness": true });
        let (spec, texts, _) = cleaned(json!({ "kubernetes": { "version": "1.31.5",
            "kubeAPIServer": { "featureGates": gates, "admissionPlugins": [{ "name": "PersistentVolumeLabel" }, { "name": "PodSecurity" }, {}] },
            "kubelet": { "featureGates": { "CSIMigrationRBD": true }, "x": 1 } } }));

        let expected = json!({ "kubernetes": { "version": "1.31.5", "kubelet": { "x": 1 },
            "kubeAPIServer": { "featureGates": { "AllBeta": true }, "admissionPlugins": [{ "name": "PodSecurity" }, {}] } } });
        assert_eq!(spec, expected);
        assert_eq!(
            texts,
            [
                text_of(
                    "feature gates",
                    "spec.kubernetes.kubeAPIServer.featureGates",
                    "1.31.5",
                    "APIPriorityAndFairness, CSIMigrationRBD"
                ),
                text_of("feature gates", "spec.kubernetes.kubelet.featureGates", "1.31.5", "CSIMigrationRBD"),
                text_of(
                    "admission plugins",
                    "spec.kubernetes.kubeAPIServer.admissionPlugins",
                    "1.31.5",
                    "PersistentVolumeLabel"
                ),
            ]
        );
    }

    /// spec 84 FG-1, D-8, scenario 54
    #[test]
    fn gates_of_a_pool_go_with_its_own_version() {
        let pool = |version: Value| json!({ "kubernetes": { "version": version, "kubelet": { "featureGates": { "CSIMigrationRBD": true } } } });
        let shoot = |version: &str, pools: Value| json!({ "kubernetes": { "version": version }, "provider": { "workers": pools } });
        let path = |at: usize| format!("spec.provider.workers[{at}].kubernetes.kubelet.featureGates");

        let (spec, texts, _) =
            cleaned(shoot("1.31.1", json!([pool(json!("1.30.1")), pool(Value::Null), pool(json!("1.31.2-rc.1"))])));

        assert_eq!(spec.pointer("/provider/workers/0"), Some(&pool(json!("1.30.1"))));
        assert_eq!(spec.pointer("/provider/workers/1/kubernetes/kubelet"), Some(&json!({})));
        assert_eq!(
            texts,
            [
                text_of("feature gates", &path(1), "1.31.1", "CSIMigrationRBD"),
                text_of("feature gates", &path(2), "1.31.2-rc.1", "CSIMigrationRBD"),
            ]
        );
        let foo = |version: &str| json!({ "kubernetes": { "version": version, "kubeProxy": { "featureGates": { "Foo": true } } } });
        assert_eq!(cleaned(foo("1.31.0")).1.len(), 1);
        assert_eq!(cleaned(foo("1.37.0")), (foo("1.37.0"), vec![], 1));
    }

    /// spec 84 D-8
    #[test]
    fn unknown_names_of_a_path_are_one_remark() {
        let names: serde_json::Map<_, _> = (0..1_000).map(|at| (format!("Foo{at:03}"), json!(true))).collect();
        let mut spec = json!({ "kubernetes": { "version": "1.37.0", "kubelet": { "featureGates": names } } });
        let mut remarks = Vec::new();
        remove_unsupported(&mut spec, &mut Vec::new(), &mut remarks);

        let texts: Vec<_> = remarks.iter().map(|remark| (&*remark.about, &*remark.detail)).collect();
        assert_eq!(texts, [("spec.kubernetes.kubelet.featureGates", "Foo000 and 999 more")]);
    }

    #[test]
    fn gates_of_any_shape_are_looked_at() {
        for same in [
            json!(null),
            json!({ "kubernetes": [] }),
            json!({ "kubernetes": { "version": "1.31.1", "kubelet": { "featureGates": [], "x": 1 }, "kubeAPIServer": { "admissionPlugins": {} } } }),
            json!({ "kubernetes": { "version": "odd", "kubelet": { "featureGates": { "Foo": true } } } }),
            json!({ "kubernetes": { "version": "1.31.1", "kubelet": { "featureGates": {} } }, "provider": { "workers": [null, 5] } }),
        ] {
            assert_eq!(cleaned(same.clone()), (same, vec![], 0));
        }
    }
}
