//! The version of the binary.

/// What is known about the build. Set by the environment of the compiler, see [`BuildInfo::of_this_binary`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildInfo {
    /// Version with a leading `v`.
    pub version: String,
    /// Commit the binary was built from; empty if not known.
    pub git_commit: String,
    /// `clean` or `dirty`; empty if not known.
    pub git_tree_state: String,
    /// RFC 3339; empty if not known.
    pub build_date: String,
    /// `<os>/<arch>`.
    pub platform: String,
}

impl BuildInfo {
    /// From `GRM_VERSION`, `GRM_GIT_COMMIT`, `GRM_GIT_TREE_STATE` and `GRM_BUILD_DATE` at compile time; the version is
    /// that of the package where it is not given.
    pub fn of_this_binary() -> Self {
        let given = |value: Option<&str>| value.unwrap_or_default().to_owned();
        let version = option_env!("GRM_VERSION").filter(|version| !version.is_empty());
        Self {
            version: version.map_or_else(|| format!("v{}", env!("CARGO_PKG_VERSION")), str::to_owned),
            git_commit: given(option_env!("GRM_GIT_COMMIT")),
            git_tree_state: given(option_env!("GRM_GIT_TREE_STATE")),
            build_date: given(option_env!("GRM_BUILD_DATE")),
            platform: format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
        }
    }

    /// The fields by name.
    pub fn fields(&self) -> [(&'static str, &str); 5] {
        [
            ("version", &self.version),
            ("gitCommit", &self.git_commit),
            ("gitTreeState", &self.git_tree_state),
            ("buildDate", &self.build_date),
            ("platform", &self.platform),
        ]
    }
}
