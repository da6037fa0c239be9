//! Tokens of ServiceAccounts and the reviews (facts §8). The tokens are JSON Web Tokens with the real claims and a
//! checksum instead of a signature: only this simulator accepts them.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::SignedDuration;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    body, encode,
    kinds::ServedKind,
    request::Request,
    state::{Answer, ApiState, text},
    status::{Cause, Failure},
    storage::Key,
};

const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const SHORTEST: i64 = 600;
const LONGEST: i64 = 1 << 32;
const DEFAULT_SECONDS: i64 = 3600;

impl ApiState {
    pub(super) fn create_token(&mut self, request: &Request) -> Result<Answer, Failure> {
        let sent: Value = serde_json::from_slice(&request.body)
            .map_err(|error| Failure::bad_request(&format!("the body is no TokenRequest: {error}")))?;
        let accounts = self.registry.find("", "v1", "serviceaccounts").ok_or_else(Failure::unknown_resource)?;
        let name = &request.info.name;
        let namespace = &request.info.namespace;
        let account = self.storage.get(&Key::new("", "serviceaccounts", namespace, name)).cloned();
        let account = account.ok_or_else(|| Failure::not_found(&accounts, name))?;
        let mut spec = sent["spec"].clone();
        if !spec.is_object() {
            spec = json!({});
        }
        let seconds = spec["expirationSeconds"].as_i64().unwrap_or(DEFAULT_SECONDS);
        check_duration(&accounts, seconds)?;
        if spec["audiences"].as_array().is_none_or(Vec::is_empty) {
            spec["audiences"] = self.behaviour.audiences.clone().into();
        }
        spec["expirationSeconds"] = seconds.into();
        spec["boundObjectRef"] = spec["boundObjectRef"].take(); // the real answer has it too, as null
        let mut facts = json!({
            "namespace": namespace, "serviceaccount": {"name": name, "uid": account.value["metadata"]["uid"]},
        });
        if !spec["boundObjectRef"].is_null() {
            let (field, bound) = self.bound_object(&spec["boundObjectRef"], namespace)?;
            facts[field] = bound;
        }
        let now = self.clock.now();
        let issued = now.as_second();
        let claims = json!({
            "aud": spec["audiences"], "exp": issued + seconds, "iat": issued, "nbf": issued, "iss": ISSUER,
            "jti": self.new_uid(), "kubernetes.io": facts, "sub": format!("system:serviceaccount:{namespace}:{name}"),
        });
        let expiration = text(now + SignedDuration::from_secs(seconds));
        let answer = json!({
            "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
            "metadata": {
                "name": name, "namespace": namespace, "uid": account.value["metadata"]["uid"],
                "creationTimestamp": self.clock.text(),
            },
            "spec": spec,
            "status": {"token": encode(&claims), "expirationTimestamp": expiration},
        });
        Ok(Answer::of_value(201, &answer))
    }

    fn bound_object(&self, reference: &Value, namespace: &str) -> Result<(&'static str, Value), Failure> {
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let (claim, resource) = match (text("apiVersion"), text("kind")) {
            ("v1", "Secret") => ("secret", "secrets"),
            ("v1", "Pod") => ("pod", "pods"),
            (version, kind) => {
                let text = format!("cannot bind token for serviceaccount to object of type {version}, Kind={kind}");
                return Err(Failure::bad_request(&text));
            }
        };
        let kind = self.registry.find("", "v1", resource).ok_or_else(Failure::unknown_resource)?;
        let name = text("name");
        let found = self.storage.get(&Key::new("", resource, namespace, name));
        let found = found.ok_or_else(|| Failure::not_found(&kind, name))?;
        let uid = found.value["metadata"]["uid"].as_str().unwrap_or_default();
        if !text("uid").is_empty() && text("uid") != uid {
            let text = format!(
                "the UID in the bound object reference ({}) does not match the UID in record. The object might have been \
                 deleted and then recreated",
                text("uid")
            );
            return Err(Failure::conflict_because(&kind, name, &text));
        }
        Ok((claim, json!({"name": name, "uid": uid})))
    }

    pub(super) fn review(&mut self, kind: &Arc<ServedKind>, request: &Request) -> Result<Answer, Failure> {
        let (mut value, _) = body::decode(kind, request)?;
        let status = match kind.kind.as_str() {
            "TokenReview" => self.review_token(&value["spec"]),
            "SubjectAccessReview" | "SelfSubjectAccessReview" if is_unclear(&value["spec"]) => {
                let text = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
                let cause = Cause::invalid("spec.resourceAttributes", &value["spec"]["resourceAttributes"], text);
                let nameless = ServedKind { kind: String::new(), ..(**kind).clone() };
                return Err(Failure::invalid(&nameless, "", vec![cause]));
            }
            "SubjectAccessReview" | "SelfSubjectAccessReview" => match &mut self.reviewer {
                Some(reviewer) => {
                    let mut spec = value["spec"].clone();
                    if kind.kind == "SelfSubjectAccessReview" {
                        (spec["user"], spec["groups"]) = (json!(request.info.user), json!(request.groups));
                    }
                    let (allowed, reason) = reviewer(&spec);
                    json!({"allowed": allowed, "reason": reason})
                }
                None => return Err(Failure::not_simulated("access reviews without a reviewer (Sim::set_reviewer)")),
            },
            other => return Err(Failure::not_simulated(&format!("reviews of the kind {other}"))),
        };
        value["status"] = status;
        Ok(Answer::of_value(201, &value))
    }

    fn review_token(&self, spec: &Value) -> Value {
        let Some(claims) = spec["token"].as_str().and_then(decode) else {
            return json!({"user": {}, "error": "invalid bearer token"});
        };
        let list = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect()
        };
        let asked = match list(&spec["audiences"]) {
            asked if asked.is_empty() => self.behaviour.audiences.clone(),
            asked => asked,
        };
        let own = list(&claims["aud"]);
        let common: Vec<_> = asked.iter().filter(|audience| own.contains(audience)).cloned().collect();
        let facts = &claims["kubernetes.io"];
        let field = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (field(&facts["namespace"]), field(&facts["serviceaccount"]["name"]));
        let account = self.storage.get(&Key::new("", "serviceaccounts", &namespace, &name));
        let is_live = account.is_some_and(|account| account.value["metadata"]["uid"] == facts["serviceaccount"]["uid"]);
        let error = if common.is_empty() {
            format!("token audiences {own:?} is invalid for the target audiences {asked:?}").replace("\", \"", "\" \"")
        } else if claims["exp"].as_i64().unwrap_or_default() <= self.clock.now().as_second() {
            "service account token has expired".to_owned()
        } else if !is_live {
            format!("serviceaccounts \"{name}\" not found")
        } else {
            let uid = &facts["serviceaccount"]["uid"];
            let groups = [
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated".into(),
            ];
            return json!({
                "authenticated": true, "audiences": common,
                "user": {"username": claims["sub"], "uid": uid, "groups": groups},
            });
        };
        json!({"user": {}, "error": format!("[invalid bearer token, {error}]")})
    }
}

/// Returns true if an access review asks for nothing or for two things.
fn is_unclear(spec: &Value) -> bool {
    spec["resourceAttributes"].is_null() == spec["nonResourceAttributes"].is_null()
}

fn check_duration(accounts: &ServedKind, seconds: i64) -> Result<(), Failure> {
    let text = if seconds < SHORTEST {
        "may not specify a duration less than 10 minutes"
    } else if seconds > LONGEST {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(());
    };
    let cause = Cause::invalid("spec.expirationSeconds", &seconds.into(), text);
    let requests =
        ServedKind { kind: "TokenRequest".into(), group: "authentication.k8s.io".into(), ..accounts.clone() };
    Err(Failure::invalid(&requests, "", vec![cause]))
}

fn checksum(payload: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(format!("simulator {payload}")))
}

fn encode(claims: &Value) -> String {
    let header = URL_SAFE_NO_PAD.encode(encode::to_vec(&json!({"alg": "none", "kid": "simulator"})));
    let payload = format!("{header}.{}", URL_SAFE_NO_PAD.encode(encode::to_vec(claims)));
    let checksum = checksum(&payload);
    format!("{payload}.{checksum}")
}

fn decode(token: &str) -> Option<Value> {
    let (payload, sum) = token.rsplit_once('.')?;
    let (_, claims) = payload.split_once('.')?;
    let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
    (checksum(payload) == sum).then(|| serde_json::from_slice(&claims).ok()).flatten()
}
