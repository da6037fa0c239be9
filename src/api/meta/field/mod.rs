//! Errors of fields, in the terms of Kubernetes' `field.Error` (spec 62 §2): where, which kind, which value, why.
//! ```
//! use gardener_resource_manager::api::meta::field::{Errors, Path};
//!
//! let (spec, mut errors) = (Path::root("spec"), Errors::default());
//! errors.required(&spec.child("region"), "field is required");
//! assert_eq!(errors.to_string(), "spec.region: Required value: field is required");
//! ```
//! Nothing here knows kinds, HTTP or clusters.

pub mod difference;
pub mod error;
pub mod formats;
mod json;
mod meaning;
pub mod net;
mod path;
mod pick;
pub mod shapes;
pub mod time;
pub mod url;

pub use error::{Error, ErrorKind, Errors, Shown};
pub use json::Json;
pub use meaning::{Loose, Opaque, means_the_same};
pub use path::Path;
pub use pick::{Keep, MOST_VALUES, Owning, Picking, TOO_MANY};
