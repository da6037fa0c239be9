//! The Namespace of a Project: its name, whether the Project may have it, and what becomes of it (spec 82 A.4, A.10).
//! Pure.

use std::fmt::Write as _;

use cluster::{Cached, object};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::cached::Project;
use crate::{
    actors::controller_manager::{
        fields::{list, text},
        owner_references::{controller_reference, owner_uids, with_owner},
        project_namespace::may_belong_to_project,
    },
    api::kinds,
};

/// The label with the role of a Namespace or an RBAC object.
pub const ROLE: &str = "gardener.cloud/role";
/// The label with the name of the Project.
pub const PROJECT: &str = "project.gardener.cloud/name";

/// Value of the role label of a Namespace.
const PROJECT_ROLE: &str = "project";

/// Annotation of a Namespace: uid of its Project.
const OWNER: &str = "namespace.gardener.cloud/project";
/// Annotation of a Namespace that was created for its Project.
const ORIGIN: &str = "namespace.gardener.cloud/created-by-project-controller";
/// Annotation of a Namespace that outlives its Project.
const KEEP: &str = "namespace.gardener.cloud/keep-after-project-deletion";

const TRUE: &str = "true";

/// Prefix of the names of Namespaces of Projects (decision 24).
const PREFIX: &str = "garden-";

/// Characters of the hash in a generated name.
const HASH: usize = 5;

/// A Project as the owner of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProjectId<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its uid.
    pub uid: &'a str,
}

/// What counts of a Namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceState {
    has_role: bool,
    /// The Project that the label names.
    project: Option<Box<str>>,
    /// The uid that the annotation names.
    owner: Option<Box<str>>,
    has_origin: bool,
    keep: Option<Box<str>>,
    /// uids in the owner references.
    owner_uids: Box<[Box<str>]>,
    is_deleting: bool,
}

/// A Namespace in the cache.
#[derive(Debug, Clone)]
pub struct CachedNamespace {
    uid: Box<str>,
    version: u64,
    /// What counts of it.
    pub state: NamespaceState,
}

/// What a Project does with the Namespace of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamespaceVerdict {
    /// Create it.
    Create,
    /// Make it its own, or repair the marks of that.
    Adopt,
    /// Nothing: it is its own.
    Keep,
    /// It is its own and being deleted: the server refuses new objects in it.
    Ending,
}

/// Why a Project cannot have a Namespace. The texts are fixed by spec 82 A.4.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// N2
    #[error("namespace \"{0}\" cannot be used as it does not start with garden-")]
    Name(String),
    /// N2: no Namespace can have this name.
    #[error("namespace \"{0}\" cannot be used as its name is no DNS label: choose another spec.namespace")]
    Form(String),
    /// It is not its own, and it is being deleted.
    #[error("namespace \"{0}\" is being terminated")]
    Terminating(String),
    /// N5
    #[error(
        "namespace cannot be used as it needs the project labels map[string]string{{\"gardener.cloud/role\":\"project\", \"project.gardener.cloud/name\":\"{0}\"}}"
    )]
    Labels(String),
    /// N6
    #[error("namespace is already in-use by another project")]
    InUse,
}

/// What becomes of the Namespace when its Project is deleted (spec 82 A.10 step 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// Nothing: it does not exist.
    Gone,
    /// Nothing: it does not belong to the Project.
    Foreign,
    /// It does not belong to the Project any more, but still names it as an owner: it loses that owner reference, by which
    /// the garbage collector would take it.
    Disown,
    /// It outlives the Project: it loses the marks of the Project.
    Keep,
    /// It is deleted.
    Delete,
    /// It is being deleted: the Project waits for its end.
    Ending,
}

impl ProjectId<'_> {
    /// Returns the owner reference of objects in the Namespace, and of the Namespace (the strong form).
    pub fn strong_reference(self) -> Value {
        controller_reference(&kinds::PROJECT, self.name, self.uid, true)
    }

    /// Returns the owner reference of RBAC objects (the weak form).
    pub fn weak_reference(self) -> Value {
        controller_reference(&kinds::PROJECT, self.name, self.uid, false)
    }
}

/// Returns the name of the Namespace of a Project: `spec.namespace`, or a name that follows from its uid.
pub fn namespace_of(name: &str, project: &Project) -> String {
    project.namespace.as_deref().map_or_else(|| generated_name(name, &project.uid), str::to_owned)
}

/// The name stays the same for one Project instance (N1).
fn generated_name(name: &str, uid: &str) -> String {
    let mut hash = String::new();
    for byte in Sha256::digest(uid.as_bytes()) {
        write!(hash, "{byte:02x}").unwrap_or_default(); // cannot fail for a String
    }
    hash.truncate(HASH);
    format!("{PREFIX}{name}-{hash}")
}

impl NamespaceState {
    /// Reads the metadata of a Namespace.
    pub fn of(namespace: &Value) -> Self {
        let annotation = |key| object::annotation(namespace, key).map(Box::from);
        Self {
            has_role: object::label(namespace, ROLE) == Some(PROJECT_ROLE),
            project: object::label(namespace, PROJECT).map(Box::from),
            owner: annotation(OWNER),
            has_origin: object::annotation(namespace, ORIGIN).is_some(),
            keep: annotation(KEEP),
            owner_uids: owner_uids(namespace).map(Box::from).collect(),
            is_deleting: object::deletion_timestamp(namespace).is_some(),
        }
    }

    /// Both labels are those of the Project.
    fn is_labelled_for(&self, project: ProjectId<'_>) -> bool {
        self.has_role && self.project.as_deref() == Some(project.name)
    }

    /// The annotation names another instance.
    fn is_of_another(&self, project: ProjectId<'_>) -> bool {
        self.owner.as_deref().is_some_and(|owner| owner != project.uid)
    }

    /// Returns the Project that its label names.
    pub fn project(&self) -> Option<&str> {
        self.project.as_deref()
    }

    /// Returns the uids in its owner references.
    pub fn owner_uids(&self) -> Vec<String> {
        self.owner_uids.iter().map(ToString::to_string).collect()
    }

    fn has_owner_reference(&self, project: ProjectId<'_>) -> bool {
        self.owner_uids.iter().any(|uid| **uid == *project.uid)
    }

    /// A Namespace that was not created for a Project is kept (N7).
    fn is_marked(&self, project: ProjectId<'_>) -> bool {
        self.owner.as_deref() == Some(project.uid)
            && self.has_owner_reference(project)
            && (self.has_origin || self.keep.as_deref() == Some(TRUE))
    }

    /// Returns true if the Project has adopted it, or created it.
    pub fn belongs_to(&self, project: ProjectId<'_>) -> bool {
        self.is_labelled_for(project)
            && !self.is_of_another(project)
            && (self.owner.is_some() || self.has_owner_reference(project))
    }
}

impl CachedNamespace {
    /// Reads the metadata of a Namespace; `None` if it has no valid version.
    pub fn of(namespace: &Value) -> Option<Self> {
        let version = object::resource_version(namespace).parse().ok()?;
        Some(Self { uid: object::uid(namespace).into(), version, state: NamespaceState::of(namespace) })
    }
}

impl Cached for CachedNamespace {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn version(&self) -> u64 {
        self.version
    }
}

/// Judges the Namespace of a Project (N2 to N8). A Namespace that is being deleted is never adopted.
pub fn judge_namespace(
    project: ProjectId<'_>,
    name: &str,
    namespace: Option<&NamespaceState>,
) -> Result<NamespaceVerdict, Refusal> {
    if !may_belong_to_project(name) {
        let has_prefix = name.starts_with(PREFIX);
        return Err(if has_prefix { Refusal::Form(name.to_owned()) } else { Refusal::Name(name.to_owned()) });
    }
    let Some(namespace) = namespace else { return Ok(NamespaceVerdict::Create) };
    match (namespace.is_deleting, namespace.belongs_to(project)) {
        (true, true) => return Ok(NamespaceVerdict::Ending),
        (true, false) => return Err(Refusal::Terminating(name.to_owned())),
        (false, _) => {}
    }
    if !namespace.is_labelled_for(project) {
        return Err(Refusal::Labels(project.name.to_owned()));
    }
    if namespace.is_of_another(project) {
        return Err(Refusal::InUse);
    }
    Ok(if namespace.is_marked(project) { NamespaceVerdict::Keep } else { NamespaceVerdict::Adopt })
}

/// Returns the Namespace of a Project, to be created (N4).
pub fn new_namespace(project: ProjectId<'_>, name: &str) -> Value {
    json!({
        "apiVersion": kinds::NAMESPACE.api_version(), "kind": &*kinds::NAMESPACE.kind,
        "metadata": {
            "name": name, "labels": {ROLE: PROJECT_ROLE, PROJECT: project.name},
            "annotations": {OWNER: project.uid, ORIGIN: TRUE}, "ownerReferences": [project.strong_reference()],
        },
    })
}

/// Returns the merge patch that makes a Namespace that of a Project; `None` if it must not or need not be (N7, N8).
pub fn adoption_patch(project: ProjectId<'_>, namespace: &Value) -> Option<Value> {
    let state = NamespaceState::of(namespace);
    if judge_namespace(project, object::name(namespace), Some(&state)) != Ok(NamespaceVerdict::Adopt) {
        return None;
    }
    let mut annotations = Map::new();
    if state.owner.is_none() {
        annotations.insert(OWNER.to_owned(), project.uid.into());
    }
    if !state.has_origin && state.keep.as_deref() != Some(TRUE) {
        annotations.insert(KEEP.to_owned(), TRUE.into());
    }
    let mut metadata = Map::new();
    if !annotations.is_empty() {
        metadata.insert("annotations".to_owned(), annotations.into());
    }
    if let Some(owners) = with_owner(namespace, &project.strong_reference()) {
        metadata.insert("ownerReferences".to_owned(), owners);
    }
    Some(json!({"metadata": metadata}))
}

/// Judges what becomes of the Namespace of a deleted Project. Only a Namespace that bears the marks of this instance is
/// changed. It is deleted only if the program created it for this instance.
pub fn judge_release(project: ProjectId<'_>, name: &str, namespace: Option<&NamespaceState>) -> Release {
    if !may_belong_to_project(name) {
        return Release::Foreign;
    }
    let Some(namespace) = namespace else { return Release::Gone };
    if namespace.is_deleting {
        let is_own = namespace.is_labelled_for(project) || namespace.owner.as_deref() == Some(project.uid);
        return if is_own { Release::Ending } else { Release::Foreign };
    }
    if !namespace.belongs_to(project) {
        return if namespace.has_owner_reference(project) { Release::Disown } else { Release::Foreign };
    }
    let is_kept = !namespace.has_origin || object::truthy(namespace.keep.as_deref());
    if is_kept { Release::Keep } else { Release::Delete }
}

/// Returns the merge patch that takes the marks of a Project from a Namespace that outlives it (spec 82 A.10.1).
pub fn release_patch(project: ProjectId<'_>, namespace: &Value) -> Value {
    json!({"metadata": {
        "labels": {ROLE: null, PROJECT: null}, "annotations": {OWNER: null, ORIGIN: null, KEEP: null},
        "ownerReferences": other_owners(project, namespace),
    }})
}

/// Returns the merge patch that takes the owner reference to a Project from a Namespace that does not belong to it.
pub fn disown_patch(project: ProjectId<'_>, namespace: &Value) -> Value {
    json!({"metadata": {"ownerReferences": other_owners(project, namespace)}})
}

/// Returns the owner references without those to the Project, for a merge patch.
fn other_owners(project: ProjectId<'_>, namespace: &Value) -> Value {
    // An object has one uid, so a reference with another name or kind is a mistake. The garbage collector would follow it.
    let is_own = |owner: &&Value| text(owner, "/uid") == project.uid;
    let others: Vec<Value> =
        list(namespace, "/metadata/ownerReferences").filter(|owner| !is_own(owner)).cloned().collect();
    if others.is_empty() { Value::Null } else { others.into() }
}
