//! spec 32 §4, §5 and §5.2: the requests to judge, and the condition.

use super::{builder::Parts, *};

fn serving() -> Value {
    csr(SERVING, "system:node:n1", &Parts::usual("system:node:n1", &[], &["n1"], &[]).pem())
}

/// spec 32 §5.2
#[test]
fn condition_is_appended_and_the_rest_is_unchanged() {
    let denial = Denial { reason: "common name in CSR does not match username".to_owned(), basis: Basis::Request };
    let [kubelet, agent] = [Certificate::KubeletServing, Certificate::NodeAgent];
    for (verdict, kind, reason, message) in [
        (
            CsrVerdict::Approved(kubelet),
            "Approved",
            "RequestApproved",
            "Approving kubelet server certificate CSR (all checks passed)",
        ),
        (
            CsrVerdict::Approved(agent),
            "Approved",
            "RequestApproved",
            "Approving gardener-node-agent certificate CSR (all checks passed)",
        ),
        (
            CsrVerdict::Denied(kubelet, denial.clone()),
            "Denied",
            "RequestDenied",
            "Denying kubelet server certificate CSR (common name in CSR does not match username)",
        ),
        (
            CsrVerdict::Denied(agent, denial),
            "Denied",
            "RequestDenied",
            "Denying gardener-node-agent certificate CSR (common name in CSR does not match username)",
        ),
    ] {
        let condition = json!({"type": kind, "status": "True", "reason": reason, "message": message});
        let failed = json!({"type": "Failed", "status": "True", "future": 7});
        for (status, conditions) in [
            (json!({}), json!([condition])),
            (Value::Null, json!([condition])),
            (json!({"conditions": null}), json!([condition])),
            (json!({"conditions": [failed]}), json!([failed, condition])),
        ] {
            let mut csr = serving();
            csr["spec"]["future"] = json!({"field": 1});
            csr["status"] = status;
            let mut expected = csr.clone();
            expected["status"] = json!({"conditions": conditions});

            assert_eq!(decided(csr, &verdict), Some(expected));
        }
        let mut without_status = serving();
        without_status.as_object_mut().unwrap().remove("status");
        assert_eq!(decided(without_status, &verdict).unwrap()["status"], json!({"conditions": [condition]}));
    }
}

/// spec 32 §5.2, scenario 18
#[test]
fn no_opinion_writes_nothing() {
    assert_eq!(decided(serving(), &CsrVerdict::NoOpinion("foo".to_owned())), None);
}

/// spec 32 §4, §5 rows 3 and 7; scenarios 16, 17 and 30 as far as the filter is concerned
#[test]
fn requests_decided_issued_or_for_other_signers_are_not_judged() {
    let condition =
        |kind: &str, status: &str| json!({"conditions": [{"type": "Other"}, {"type": kind, "status": status}]});
    for (signer, status, expected) in [
        (SERVING, json!({}), true),
        (CLIENT, Value::Null, true),
        ("kubernetes.io/kube-apiserver-client-kubelet", json!({}), false),
        ("example.com/signer", json!({}), false),
        ("", json!({}), false),
        (SERVING, condition("Approved", "True"), false),
        (SERVING, condition("Denied", "True"), false),
        (CLIENT, condition("Denied", "False"), false),
        (CLIENT, condition("Failed", "True"), true),
        (SERVING, json!({"certificate": "LS0tLS1C"}), false),
        (SERVING, json!({"certificate": ""}), true),
        (SERVING, json!({"conditions": "?"}), true),
    ] {
        let mut csr = csr(signer, "system:node:n1", &Parts::usual("system:node:n1", &[], &[], &[]).pem());
        csr["status"] = status;

        assert_eq!(wants(&csr), expected, "{csr}");
        assert_eq!(Csr::read(&csr).unwrap().is_some(), expected);
    }
    assert!(!wants(&json!({})));
}

/// spec 32 §5 row 4
#[test]
fn unparsable_request_is_an_error() {
    let block = "unable to parse csr: PEM block type must be CERTIFICATE REQUEST";
    for (pem, text) in [
        ("", block),
        ("no PEM", block),
        (&builder::pem("CERTIFICATE", &[0x30, 0x00]), block),
        (
            &builder::pem("CERTIFICATE REQUEST", &[0x30, 0x00]),
            "unable to parse csr: ASN.1 DER message is incomplete: expected 3, actual 2 at DER byte 2",
        ),
    ] {
        assert_eq!(Csr::read(&csr(SERVING, "u", pem)).unwrap_err().to_string(), text);
    }
    for request in [json!("%"), Value::Null, json!(7)] {
        let mut csr = serving();
        csr["spec"]["request"] = request;
        assert_eq!(Csr::read(&csr).unwrap_err().to_string(), block);
    }
}
