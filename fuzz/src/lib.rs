//! What the fuzz targets share.

#[path = "../../tests/checks/mod.rs"]
pub mod checks;
pub mod mutate;
#[path = "../../tests/checks/places.rs"]
mod places;
mod words;
