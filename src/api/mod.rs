//! The outside contract: types, constants, defaults and validation. No I/O. The first files to read are [`keys`] (every
//! annotation, label, finalizer and fixed text), [`managed_resource`], [`conditions`] and [`config`].

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
