/// Version and build details, from environment variables of the compiler, see [`BuildInfo::of_this_binary`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildInfo {
    /// Version with a leading `v`.
    pub version: String,
    /// Commit of the sources; empty if unknown.
    pub git_commit: String,
    /// `clean` or `dirty`; empty if unknown.
    pub git_tree_state: String,
    /// RFC 3339; empty if unknown.
    pub build_date: String,
    /// `<os>/<arch>`.
    pub platform: String,
}

impl BuildInfo {
    /// Reads `GRM_VERSION`, `GRM_GIT_COMMIT`, `GRM_GIT_TREE_STATE` and `GRM_BUILD_DATE` at compile time.
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

    /// The fields with their names.
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
