//! What a life contains besides ManagedResources: static tokens, tokens of the requestor, collectable objects.

use sim::RequestInfo;

use super::{access::Accesses, collectables::Collectables, tokens::Tokens};
use crate::world::World;

/// The lead of the program's clock, in seconds, at which tokens of 12 h are renewed all the time.
const OLD: i64 = 9 * 3600;

#[derive(Clone)]
pub(super) struct Beside {
    tokens: Tokens,
    accesses: Accesses,
    collectables: Collectables,
}

impl Beside {
    pub(super) fn new(world: &World, seed: u64, calm: bool, lossy: bool) -> Self {
        Self {
            tokens: Tokens::new(world, seed, calm, lossy),
            accesses: Accesses::new(world, seed),
            collectables: Collectables::new(world, seed, calm),
        }
    }

    pub(super) fn see(&self, info: &RequestInfo) {
        self.tokens.see(info);
        self.collectables.see(info);
    }

    pub(super) fn act(&self) -> String {
        [self.tokens.act(), self.accesses.act(), self.collectables.act()].join("; ")
    }

    pub(super) fn jump(&self, seconds: i64) {
        self.collectables.jump(seconds);
    }

    /// Whether an idle program may send a write: reviews, old objects and, far ahead of the server's clock, old tokens.
    pub(super) fn may_come(&self, info: &RequestInfo) -> bool {
        let is_old = self.collectables.ahead() > OLD;
        info.resource == "tokenreviews" || Collectables::is_collected(info) || (is_old && Accesses::is_renewal(info))
    }

    pub(super) fn violations(&self) -> Vec<String> {
        [self.tokens.violations(), self.collectables.violations()].concat()
    }

    pub(super) fn wrong(&self) -> Vec<String> {
        [self.tokens.wrong(), self.accesses.wrong(), self.collectables.wrong()].concat()
    }

    /// Whether an actor of one of the controllers still has an object; `None` for other controllers.
    pub(super) fn knows(&self, path: &str) -> Option<bool> {
        let (controller, _) = path.split_once('/')?;
        let name = path.rsplit('/').next().unwrap_or_default();
        match controller {
            "token-invalidator" => Some(self.tokens.has(name)),
            "token-requestor" => Some(self.accesses.has(name)),
            "garbage-collector" => Some(true),
            _ => None,
        }
    }
}
