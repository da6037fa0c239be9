use super::*;
use crate::{
    cli::RegistrationOptions,
    commands::{CommandError, OK, registration::registration},
};

const CA: &str = "-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n";

fn registered(place: &str, config: Option<&str>, ca: &str) -> Result<Said, CommandError> {
    let options =
        RegistrationOptions { place: place.to_owned(), namespace: "ns".to_owned(), ..RegistrationOptions::default() };
    said(&options, config, ca)
}

fn said(options: &RegistrationOptions, config: Option<&str>, ca: &str) -> Result<Said, CommandError> {
    registration(options, config.map(|config| source("config", config)).as_ref(), &source("ca.crt", ca))
}

fn names(said: &Said) -> Vec<String> {
    let made: serde_json::Value = serde_saphyr::from_str(&said.out).unwrap();
    let names = made["webhooks"].as_array().into_iter().flatten().map(|webhook| webhook["name"].as_str().unwrap());
    names.map(|name| name.split('.').next().unwrap().to_owned()).collect()
}

#[test]
fn registration_has_only_enabled_webhooks() {
    let config = "apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
leaderElection: {leaderElect: false}
webhooks: {seccompProfile: {enabled: true}, systemComponentsConfig: {enabled: true}}
";

    let seed = registered("seed", Some(config), CA).unwrap();
    let shoot = registered("shoot", Some(config), CA).unwrap();
    let garden = registered("garden", Some(config), CA).unwrap();

    assert_eq!(names(&garden), ["seccomp-profile", "system-components-config"], "of a garden on a self-hosted shoot");
    assert_eq!((seed.code, names(&seed)), (OK, vec!["seccomp-profile".to_owned()]));
    assert_eq!(seed.remarks, ["warning: webhooks.systemComponentsConfig is not used with this --place"]);
    assert_eq!(names(&shoot), ["system-components-config"]);
    assert_eq!(shoot.remarks, ["warning: webhooks.seccompProfile is not used with this --place"]);
    assert!(shoot.out.contains("https://gardener-resource-manager.ns:443/webhooks/"));
    assert!(shoot.out.contains(&base64::Engine::encode(&base64::prelude::BASE64_STANDARD, CA)));
}

#[test]
fn registration_without_a_configuration_has_the_usual_webhooks() {
    let said = registered("shoot", None, CA).unwrap();
    assert!(names(&said).contains(&"projected-token-mount".to_owned()), "{:?}", names(&said));

    let seed = registered("seed", None, CA).unwrap().out;
    assert!(seed.contains("name: projected-token-mount") && seed.contains("kind: ValidatingWebhookConfiguration"));
    assert!(seed.contains("name: crd-deletion-protection.resources.gardener.cloud"), "{seed}");
}

#[test]
fn registration_refuses_an_invalid_certificate() {
    let error = registered("seed", None, "-----BEGIN PRIVATE KEY-----").unwrap_err();

    assert_eq!(error.to_string(), "ca.crt does not begin with a PEM certificate");
}

/// spec 71 §9
#[test]
fn registration_of_the_authorizer_is_what_a_kube_apiserver_reads() {
    let options = |place: &str| RegistrationOptions {
        place: place.to_owned(),
        authorizer: true,
        prefix: "my-".to_owned(),
        ..RegistrationOptions::default()
    };
    let config = |enabled: bool| {
        format!(
            "apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
leaderElection: {{leaderElect: false}}
webhooks: {{nodeAgentAuthorizer: {{enabled: {enabled}}}}}
"
        )
    };

    let shoot = said(&options("shoot"), Some(&config(true)), CA).unwrap();
    let workerless = said(&options("workerless-shoot"), None, CA).unwrap();
    let off = said(&options("self-hosted-shoot"), Some(&config(false)), CA).unwrap();
    let seed = said(&options("seed"), None, CA).unwrap_err();

    assert_eq!((shoot.code, shoot.remarks.len()), (OK, 0));
    let (authorization, kubeconfig) = shoot.out.split_once("---\n").unwrap();
    assert!(authorization.contains("'gardener.cloud:node-agents' in request.groups"), "{authorization}");
    assert!(
        kubeconfig.contains("server: https://my-gardener-resource-manager/webhooks/auth/nodeagent"),
        "{kubeconfig}"
    );
    let types = |out: &str| out.lines().filter(|line| line.trim_start().starts_with("type: ")).count();
    assert_eq!((types(&shoot.out), types(&workerless.out)), (4, 3), "no kubelets, no Node authorizer");
    assert_eq!(
        off.remarks,
        ["warning: webhooks.nodeAgentAuthorizer is not enabled, so the API server will deny what node agents request"]
    );
    assert_eq!(
        seed.to_string(),
        "the authorizer is for node agents, so --place must be one of shoot, self-hosted-shoot, workerless-shoot"
    );
}
