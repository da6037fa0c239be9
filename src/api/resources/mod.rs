//! ManagedResources, and annotations, labels and finalizers of the objects around them.

pub mod class;
pub mod condition_names;
pub mod crd;
pub mod istio;
pub mod keys;
pub mod managed_resource;
pub mod origin;
pub mod side;
