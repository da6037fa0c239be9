//! Shared by the fuzz targets.

#[path = "../../tests/checks/mod.rs"]
pub mod checks;
pub mod mutate;
#[path = "../../tests/checks/places.rs"]
mod places;
mod words;
