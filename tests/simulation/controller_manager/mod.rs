//! gardener-controller-manager on the simulated API server. Start reading at `garden::Garden`.

mod garden;
mod guards;
mod references;
