//! What happens in a life beside its bundles: static tokens, tokens of the requestor, collectable objects.

use sim::RequestInfo;

use super::{access::Accesses, collectables::Collectables, tokens::Tokens};
use crate::world::World;

/// Seconds by which the program's clock is ahead when tokens of 12 h are renewed all the time.
const OLD: i64 = 9 * 3600;

/// All of it; clones share.
#[derive(Clone)]
pub(super) struct Beside {
    tokens: Tokens,
    accesses: Accesses,
    collectables: Collectables,
}

impl Beside {
    /// With its controllers in the configuration with which the program is started next.
    pub(super) fn new(world: &World, seed: u64, calm: bool, lossy: bool) -> Self {
        Self {
            tokens: Tokens::new(world, seed, calm, lossy),
            accesses: Accesses::new(world, seed),
            collectables: Collectables::new(world, seed, calm),
        }
    }

    /// Sees a request before it is carried out.
    pub(super) fn see(&self, info: &RequestInfo) {
        self.tokens.see(info);
        self.collectables.see(info);
    }

    /// Some things happen; gives what.
    pub(super) fn act(&self) -> String {
        [self.tokens.act(), self.accesses.act(), self.collectables.act()].join("; ")
    }

    /// The program's clock jumps by `seconds`.
    pub(super) fn jump(&self, seconds: i64) {
        self.collectables.jump(seconds);
    }

    /// Whether a write is one that may happen at rest: reviews store nothing, what is young grows old, and to a clock that is
    /// far ahead each token is old.
    pub(super) fn may_come(&self, info: &RequestInfo) -> bool {
        let is_old = self.collectables.ahead() > OLD;
        info.resource == "tokenreviews" || Collectables::is_collected(info) || (is_old && Accesses::is_renewal(info))
    }

    /// What was wrong so far.
    pub(super) fn violations(&self) -> Vec<String> {
        [self.tokens.violations(), self.collectables.violations()].concat()
    }

    /// What is not as it should be in the end.
    pub(super) fn wrong(&self) -> Vec<String> {
        [self.tokens.wrong(), self.accesses.wrong(), self.collectables.wrong()].concat()
    }

    /// Whether an actor of one of the controllers has something to look after; `None` if it is none of these.
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
