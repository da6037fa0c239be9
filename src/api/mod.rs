//! The outside contract: types, constants, defaults and validation. No I/O. The first files to read are
//! [`resources::keys`] (every annotation, label, finalizer and fixed text), [`resources::managed_resource`],
//! [`meta::conditions`] and [`config`].
//! * [`meta`]: fields, quantities, selectors, conditions: what all kinds share
//! * [`kinds`]: the kinds that the programs name in their code
//! * [`resources`]: ManagedResources and what belongs to them
//! * [`config`]: the component configurations

pub mod config;
pub mod kinds;
pub mod meta;
pub mod resources;
