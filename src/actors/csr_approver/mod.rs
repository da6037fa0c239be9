//! Approves or denies CertificateSigningRequests of kubelets (serving), node agents and gardenadm (spec 32): pure functions
//! on plain values.
//!
//! ```text
//! CSR ─ csr.rs ─► Csr ─ judge.rs ─► Verdict ─ condition.rs ─► CSR with its decision
//!       request.rs       facts.rs: Nodes, Machines
//!       pem.rs, der.rs
//! ```
//!
//! * [`judge`]: who gets which certificate. **Start reading here**
//! * [`csr`]: which CertificateSigningRequests are judged, and what is read of them
//! * [`request`]: PKCS#10, as Go reads it; on `pem` and `der`
//! * [`facts`]: what is known of Nodes and Machines, from stores or read live
//! * [`condition`]: what is written
//!
//! A pass judges on the stores first. A denial that [must be confirmed](judge::Verdict::must_be_confirmed) is judged once
//! more on [`facts::Live`], which asks for one read after the other until there is a verdict. A read that fails is an error
//! of the pass ([`facts::Lookup::failed`]), never a denial.

pub mod condition;
pub mod csr;
mod der;
pub mod facts;
pub mod judge;
mod pem;
pub mod request;

#[cfg(test)]
mod tests;

pub use condition::decided;
pub use csr::{Csr, Signer, Unparsable, wants};
pub use der::Malformed;
pub use facts::{Facts, Live, Lookup, Machine, NodeAddresses};
pub use judge::{Basis, Certificate, Denial, Verdict, judge};
pub use request::{Request, Unreadable};
