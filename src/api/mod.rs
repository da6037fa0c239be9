//! The outside contract: types, constants, defaults and validation. No I/O.
//!
//! * [`age`]: how long ago something was, as kubectl writes it.
//! * [`keys`]: every annotation, label, finalizer and fixed text of the API.
//! * [`managed_resource`]: a ManagedResource as this program reads it, and how its status gets back into the raw object.
//! * [`conditions`]: the condition type and its update rules.
//! * [`class`]: who is responsible for a ManagedResource.
//! * [`origin`]: the annotation that names an object's owner.
//! * [`config`]: the component configuration.
//! * [`duration`]: durations as Go writes them.
//! * [`field`]: errors of fields in the terms of Kubernetes, and what they are made from.
//! * [`fields`]: fields of raw JSON objects, read and made.
//! * [`integer`]: integers as Go reads them.
//! * [`object`]: names and metadata of any object, from the layer below.
//! * [`quantity`]: amounts of resources.
//! * [`quote`]: text in quotes, with Go's escapes.
//! * [`record`]: JSON objects that users write into annotations.
//! * [`selector`]: label selectors.

pub mod age;
pub mod class;
pub mod conditions;
pub mod config;
pub mod crd;
pub mod duration;
pub mod field;
pub mod fields;
pub mod integer;
pub mod istio;
pub mod keys;
pub mod managed_resource;
pub mod origin;
pub mod quantity;
pub mod quote;
pub mod record;
pub mod selector;

pub use cluster::object;
