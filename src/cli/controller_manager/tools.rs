//! The commands of gardener-controller-manager and their options. The comments of variants and options are the texts of
//! the help.

#![allow(rustdoc::broken_intra_doc_links, reason = "the help shows defaults in brackets")]

use std::ffi::OsStr;

use clap::{
    Args, Subcommand,
    builder::{PossibleValue, StringValueParser, TypedValueParser},
};
use cluster::Resource;

use super::{
    super::{
        epilogue::epilogue_of,
        grammar::{ConnectionOptions, ReportOptions, managed_resource, namespace},
        manual::ManOptions,
        operator_tools::{CompletionOptions, VersionOptions},
        short_names::long_name,
    },
    PROGRAM, ProgramCheckOptions,
};
use crate::actors::controller_manager::referrers;

/// A command for operators.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Tool {
    /// Show who refers to an object, and which finalizer each referrer keeps on it. Nothing is written.
    ///
    /// The rules are those of the controllers. STATE is in use, in deletion (the referrer is being deleted, and counts until
    /// its own controllers have finished) or finished (it does not count any more). KEEPS is the finalizer that the referrer
    /// keeps on the object; of a Seed nothing is kept.
    ///
    /// Secrets are read as metadata, and never listed. The command lists the kinds that may refer to the object: the user
    /// needs the right to list them. The controller need not run.
    #[command(
        about = "Show who refers to an object",
        after_long_help = epilogue_of(
            PROGRAM,
            &[
                "referrers secret garden-dev/my-secret",
                "referrers quotas.core.gardener.cloud small -n garden-dev",
                "referrers cloudprofile aws -o json",
            ],
            "the object does not exist",
        )
    )]
    Referrers(ReferrersOptions),
    /// Check what the program with a configuration needs of the garden cluster: rights and kinds. Nothing is written.
    ///
    /// The command reaches the cluster as the program does: run it where the program runs, for example with kubectl exec. For
    /// each right it asks the API server with a SelfSubjectAccessReview.
    ///
    /// RESULT is ok, missing, or note: the program waits for it. Only missing changes the exit code.
    #[command(
        about = "Check rights and kinds that the program needs",
        after_long_help = epilogue_of(
            PROGRAM,
            &["check --config config.yaml", "check --config config.yaml -o json"],
            "a right, a kind or the cluster is missing",
        )
    )]
    Check(ProgramCheckOptions),
    /// Print the version and the details of the build.
    #[command(
        long_about = "Print the version and the details of the build.",
        after_long_help = epilogue_of(PROGRAM, &["version", "version -o json"], "")
    )]
    Version(VersionOptions),
    /// Write a manual page for each command.
    #[command(
        long_about = "Write a manual page for the program and for each command, in section 1. A directory that does not exist \
            is made; pages that exist are overwritten.",
        after_long_help = epilogue_of(PROGRAM, &["man ~/.local/share/man/man1"], "")
    )]
    Man(ManOptions),
    /// Print a script that completes commands and flags in a shell.
    #[command(
        long_about = "Print a script that completes commands and flags in a shell.",
        after_long_help = epilogue_of(
            PROGRAM,
            &["completion bash > /etc/bash_completion.d/gardener-controller-manager"],
            ""
        )
    )]
    Completion(CompletionOptions),
}

/// Options of `referrers`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[group(skip)]
pub struct ReferrersOptions {
    /// Kind of the object, e.g. secret, quotas or Quota.core.gardener.cloud.
    #[arg(value_name = "KIND[.GROUP]", value_parser = KindParser, hide_possible_values = true, long_help = kinds_help())]
    pub kind: ReferredKind,
    /// Name of the object.
    #[arg(value_name = "[NAMESPACE/]NAME", value_parser = managed_resource)]
    pub name: String,
    /// Namespace of the object [default: that of the kubeconfig's context]
    #[arg(long, short, value_name = "NAMESPACE", value_parser = namespace)]
    pub namespace: Option<String>,
    /// How the referrers are printed.
    #[command(flatten)]
    pub report: ReportOptions,
    /// The connection to the garden cluster.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

/// A kind whose referrers are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferredKind(&'static Resource);

/// Reads a [`ReferredKind`].
#[derive(Debug, Clone, Copy)]
struct KindParser;

impl ReferredKind {
    /// Returns it as the server addresses it.
    pub fn resource(self) -> &'static Resource {
        self.0
    }

    fn named(text: &str) -> Result<Self, String> {
        let called = |text: &str| referrers::kinds().into_iter().find(|kind| kind.is_called(text));
        called(text).or_else(|| called(long_name(text))).map(Self).ok_or_else(|| {
            let kinds: Vec<String> = referrers::kinds().iter().map(|kind| kind.kind.to_string()).collect();
            format!("must be one of {}, or its plural; a group follows a dot", kinds.join(", "))
        })
    }
}

impl TypedValueParser for KindParser {
    type Value = ReferredKind;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<ReferredKind, clap::Error> {
        let parser = StringValueParser::new().try_map(|text: String| ReferredKind::named(&text));
        parser.parse_ref(command, argument, value)
    }

    /// For completion.
    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(referrers::kinds().into_iter().map(|kind| PossibleValue::new(&*kind.plural))))
    }
}

fn kinds_help() -> String {
    let kinds: Vec<String> = referrers::kinds().iter().map(|kind| kind.kind.to_string()).collect();
    format!(
        "Kind of the object, in any case, or its plural; a group follows a dot, e.g. Quota.core.gardener.cloud. Kinds: {}",
        kinds.join(", ")
    )
}

impl Tool {
    /// Fails for options that contradict each other in a way that their declarations do not say.
    pub(super) fn check(&self) -> Result<(), String> {
        let Self::Referrers(ReferrersOptions { kind, name, namespace, .. }) = self else { return Ok(()) };
        let given = name.split_once('/').map(|(namespace, _)| namespace);
        let Resource { plural, namespaced, .. } = kind.resource();
        match (namespaced, given.or(namespace.as_deref())) {
            (false, Some(_)) => Err(format!("{plural} have no namespace — leave it out")),
            _ if given.zip(namespace.as_deref()).is_some_and(|(given, other)| given != other) => {
                Err("-n and the namespace of a name differ — leave out one of them".to_owned())
            }
            _ => Ok(()),
        }
    }
}
