//! The actors: one folder per controller, and the tree that starts them. What they stand on is the crate [`kit`].

pub mod health;
pub mod leader;
pub mod managed_resource;
pub mod root;
