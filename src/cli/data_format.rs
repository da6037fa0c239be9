use clap::ValueEnum;

/// Output format of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DataFormat {
    /// YAML, several objects as several documents.
    Yaml,
    /// JSON, several objects as a list.
    Json,
}
