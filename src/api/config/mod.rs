//! The component configurations of the programs.

pub mod controller_manager;
mod label_selector;
pub mod resource_manager;

#[cfg(test)]
mod tests;
