//! RBAC objects that controllers keep: ClusterRoles, ClusterRoleBindings and RoleBindings with one owner, whose grant
//! belongs to one controller alone.
//!
//! `RbacObject, wanted ─┬─ judge ─► RbacVerdict: nothing, a merge patch, or a replacement`
//! `RbacState, cached ──┘`
//! * [`object`]: the objects that are wanted, and their builders
//! * [`state`]: what is kept of an object, and in what it differs from the wanted one
//! * [`writer`]: settles one object by reads and writes

pub mod object;
pub mod state;
#[cfg(test)]
mod tests;
pub mod writer;

pub use self::{
    object::{Keeper, PolicyRule, RbacKind, RbacObject, Subject},
    state::{RbacState, RbacVerdict},
};
