//! The direction of traffic.

/// The direction of traffic, seen from the selected pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// To the pods.
    Ingress,
    /// From the pods.
    Egress,
}

impl Direction {
    /// Returns the direction as tables show it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ingress => "in",
            Self::Egress => "out",
        }
    }
}
