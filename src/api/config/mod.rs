//! The component configurations of the programs.

pub mod controller_manager;
#[cfg(test)]
mod example;
mod label_selector;
pub mod resource_manager;
