use crate::{
    api::config::resource_manager::{HighAvailabilityConfig, NodeAgentAuthorizer},
    programs::resource_manager::tests::*,
    webhooks::{
        exchange::{Body, Received},
        knowledge::Answers,
        registry,
        view::View as _,
    },
};

/// spec 50 scenario 12, "better" 2
#[test]
fn standby_knows_what_webhooks_read_before_it_is_ready() {
    world(|world| async move {
        let mut config = elected();
        config.webhooks.high_availability_config = HighAvailabilityConfig::default().into();
        let first = world.start_beside("first", config.clone());
        world.held_by("first").await;
        world.sim.set_faults(|info| match info.resource.as_str() {
            "nodes" => Fault::FailBefore(Seen::Disconnect),
            _ => Fault::None,
        });
        let second = world.start_beside("second", config);
        let readiness = second.vitals.readiness();
        let query = ProbeQuery::default();
        sleep(LIMIT).await;
        assert_eq!(readiness.aggregate(&query).status, 500);

        world.sim.set_faults(|_| Fault::None);
        testing::eventually("it is ready", LIMIT, || readiness.aggregate(&query).status == 200).await;

        let (knowledge, answers) = (second.process.caches().knowledge(), Answers::default());
        assert_eq!(knowledge.sight(&answers).has_one_node(), Ok(false));
        assert_eq!(world.holder().as_deref(), Some("first"));
        second.process.stop(PATIENCE).await;
        assert_eq!(knowledge.sight(&answers).has_one_node(), Ok(false), "reviews are answered to the end");
        first.process.stop(PATIENCE).await;
    });
}

/// spec 61 scenario 32: as soon as it is ready, and without a single read
#[test]
fn standby_authorizes() {
    world(|world| async move {
        let mut config = elected();
        config.webhooks.node_agent_authorizer = NodeAgentAuthorizer::default().into();
        world.sim.put(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})).unwrap();
        let first = world.start_beside("first", config.clone());
        world.held_by("first").await;
        let second = world.start_beside("second", config.clone());
        let (readiness, query) = (second.vitals.readiness(), ProbeQuery::default());
        testing::eventually("it is ready", LIMIT, || readiness.aggregate(&query).status == 200).await;
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": "gardener.cloud:node-agent:machine:n1", "groups": ["gardener.cloud:node-agents"],
            "resourceAttributes": {"verb": "get", "resource": "nodes", "name": "n1"},
        }});
        let body = Body::Whole(review.to_string().into());
        let received = Received { body, content_type: "application/json".to_owned() };
        let served = registry::enabled(&config.webhooks);

        let answers = Answers::default();
        let answer =
            served[0].endpoint.answer(&received, &second.process.caches().knowledge().sight(&answers)).unwrap();

        let answer: Value = serde_json::from_slice(&answer.reply.body).unwrap();
        assert_eq!(answer["status"], json!({"allowed": true}));
        assert_eq!(world.holder().as_deref(), Some("first"));
        second.process.stop(PATIENCE).await;
        first.process.stop(PATIENCE).await;
    });
}

/// spec 60 scenario 20
#[test]
fn standby_protects_from_deletion() {
    world(|world| async move {
        let mut config = elected();
        config.webhooks.crd_deletion_protection.enabled = true;
        let first = world.start_beside("first", config.clone());
        world.held_by("first").await;
        let second = world.start_beside("second", config.clone());
        let (readiness, query) = (second.vitals.readiness(), ProbeQuery::default());
        testing::eventually("it is ready", LIMIT, || readiness.aggregate(&query).status == 200).await;
        let resource = json!({"group": "extensions.gardener.cloud", "version": "v1alpha1", "resource": "workers"});
        let review = json!({"request": {"operation": "DELETE", "resource": resource, "name": "w", "oldObject": {}}});
        let body = Body::Whole(review.to_string().into());
        let received = Received { body, content_type: "application/json".to_owned() };
        let served = registry::enabled(&config.webhooks);

        let answers = Answers::default();
        let answer =
            served[0].endpoint.answer(&received, &second.process.caches().knowledge().sight(&answers)).unwrap();

        let answer: Value = serde_json::from_slice(&answer.reply.body).unwrap();
        assert_eq!(answer["response"]["status"]["code"], 403);
        second.process.stop(PATIENCE).await;
        first.process.stop(PATIENCE).await;
    });
}
