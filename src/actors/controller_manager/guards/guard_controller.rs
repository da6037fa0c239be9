//! A controller that only guards its kind.

use std::rc::Rc;

use cluster::{Context, object::NamespacedName};
use kit::{Controller, Failure, Outcome, Reconcile, Reconciler, Supervised};

use super::{Guard, GuardDefinition, Told};
use crate::actors::controller_manager::context::{GardenContext, StartControllers};

struct GuardController {
    definition: &'static GuardDefinition,
    workers: usize,
    guard: Guard,
}

/// Opens the watches of a guard. The returned function starts its controller.
pub fn setup(definition: &'static GuardDefinition, workers: usize, ctx: &GardenContext) -> StartControllers {
    let guard = Guard::open(definition, ctx);
    Box::new(move |ctx| {
        let supervised = Supervised::start(Rc::new(GuardController { definition, workers, guard }), &ctx.env);
        supervised.controller().guard.subscribe(&supervised);
        supervised.into()
    })
}

impl Controller for GuardController {
    type Key = NamespacedName;
    type Memory = Told;

    fn name(&self) -> &'static str {
        self.definition.controller
    }

    fn reconcilers(&self) -> Vec<Reconciler> {
        let kind = &self.definition.kind;
        let reconciler = Reconciler::new(self.definition.controller, self.workers).about((&kind.group, &kind.kind));
        vec![self.guard.requirements().fold(reconciler, Reconciler::requires)]
    }

    async fn reconcile(
        self: &Rc<Self>,
        told: &mut Told,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let key = &reconcile.key;
        let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
        let outcome = self.guard.settle(&context, told, reconcile).await?;
        Ok(outcome.unwrap_or(Outcome::Retire))
    }
}
