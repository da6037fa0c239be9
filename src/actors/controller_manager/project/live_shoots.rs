//! Live looks for Shoots in the Namespaces of deleted Projects.

use std::{cell::RefCell, collections::BTreeSet, rc::Rc, time::Duration};

use cluster::{ApiError, CachedFields, Cluster, Context, ListQuery, Watch, object::NamespacedName};
use futures::{
    FutureExt as _,
    future::{LocalBoxFuture, Shared, try_join_all},
};
use kit::{Deadline, Priority};

use super::{NAME, caches::Caches};
use crate::{actors::shared::live_lists::LIST_TIME, api::kinds};

/// A look waits this long for more Projects. Each of them has to wait for the end of its Namespace anyway.
const GATHERING: Duration = Duration::from_millis(50);

/// One list of all Shoots takes the place of one request per Project up to so many Shoots per Project. A request for the
/// first Shoot of a Namespace costs the server little, a page of all Shoots a lot.
const SHOOTS_PER_PROJECT: usize = 50;

/// Names of Namespaces.
type Namespaces = BTreeSet<String>;

/// Returns those of the asked Namespaces that have no Shoot.
type Look = Shared<LocalBoxFuture<'static, Result<Rc<Namespaces>, ApiError>>>;

/// Looks that several Projects share.
#[derive(Default)]
pub(super) struct LiveShoots(Rc<RefCell<Option<Gathering>>>);

/// A look that has not begun.
struct Gathering {
    asked: Namespaces,
    look: Look,
}

impl LiveShoots {
    /// Returns a look that begins after this call, and is about this Namespace, too. A Namespace is clear only if the
    /// result names it.
    pub(super) fn look(&self, caches: &Caches, namespace: &str) -> Look {
        let mut gathering = self.0.borrow_mut();
        if let Some(Gathering { asked, look }) = &mut *gathering {
            asked.insert(namespace.to_owned());
            return look.clone();
        }
        let (own, cluster, shoots) = (self.0.clone(), caches.cluster.clone(), caches.shoots.clone());
        let look = async move {
            tokio::time::sleep(GATHERING).await;
            let gathered = own.borrow_mut().take(); // who asks from now on gets the next look
            let asked = gathered.map(|gathered| gathered.asked).unwrap_or_default();
            without_shoots(&cluster, &shoots, asked).await.map(Rc::new)
        };
        let look: Look = look.boxed_local().shared();
        *gathering = Some(Gathering { asked: Namespaces::from([namespace.to_owned()]), look: look.clone() });
        look
    }
}

async fn without_shoots(
    cluster: &Cluster,
    shoots: &Watch<CachedFields<()>>,
    asked: Namespaces,
) -> Result<Namespaces, ApiError> {
    let context = Context::new(Priority::High, Deadline::after(LIST_TIME), NAME);
    if asked.len() > 1 && shoots.store().len() <= asked.len() * SHOOTS_PER_PROJECT {
        let mut clear = asked;
        let note = |shoot: &NamespacedName, _: &CachedFields<()>| {
            clear.remove(&shoot.namespace);
        };
        shoots.list_live(&context, None, None, note).await?;
        return Ok(clear);
    }
    let query = ListQuery { limit: Some(1), metadata_only: true, ..ListQuery::default() };
    let pages = asked.into_iter().map(|namespace| async {
        let page = cluster.list(&context, &kinds::SHOOT, Some(namespace.as_str()), &query).await?;
        Ok::<_, ApiError>(page.items.is_empty().then_some(namespace))
    });
    Ok(try_join_all(pages).await?.into_iter().flatten().collect())
}
