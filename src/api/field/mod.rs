//! Errors of fields, in the terms of Kubernetes' `field.Error` (spec 62 §2): where, what kind of fault, which value,
//! why.
//!
//! ```
//! use gardener_resource_manager::api::field::{Errors, Path};
//!
//! let (spec, mut errors) = (Path::root("spec"), Errors::default());
//! errors.required(&spec.child("region"), "field is required");
//! assert_eq!(errors.to_string(), "spec.region: Required value: field is required");
//! ```
//!
//! * `path.rs`: paths; they borrow from each other and cost nothing until an error names one.
//! * `error.rs`: the kinds of errors, their texts, and how several become one.
//! * `json.rs`: JSON borrowed from its bytes; `shapes.rs`: types of fields, read from it as Go does; `meaning.rs`:
//!   comparison by meaning; `pick.rs`: parts of values; `time.rs`: times.
//! * `formats.rs`: DNS names, qualified names, label values; `net.rs`: addresses, networks; `url.rs`: references.
//! * `difference.rs`: the changes between two values, for messages.
//!
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
mod time;
pub mod url;

pub use error::{Error, ErrorKind, Errors, Shown};
pub use json::{Budget, Json, MOST_VALUES, TOO_MANY};
pub use meaning::{Loose, Opaque, means_the_same};
pub use path::Path;
pub use pick::{Keep, Picking};
