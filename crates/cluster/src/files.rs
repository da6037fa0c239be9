//! Reads files of bounded size. A path may name anything, e.g. `/dev/zero` or a pipe without a writer. So every read
//! has a limit, and a file that is read repeatedly must be a regular file. Kubeconfigs and tokens are read in this
//! crate, the component configuration and certificates by the program with these functions; actors read no files.

use std::{
    io::{self, Read as _},
    path::Path,
};

/// Reads a file of at most `limit` bytes. A larger file fails with `file is larger than <limit>`.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limit {
        return Err(io::Error::other(format!("file is larger than {}", size(limit))));
    }
    Ok(bytes)
}

/// As [`read`], but fails with `it is not a regular file`, without waiting, for a pipe or a device.
pub fn read_regular(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    read(path, limit)
}

/// As [`read_regular`], for a file that a user names: what `/dev` and `/proc` name is read, too, because the pipe of a
/// shell, `<(…)`, is `/dev/fd/63`. Any other pipe may block forever.
pub fn read_given(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let is_of_process = ["/dev", "/proc"].iter().any(|folder| path.starts_with(folder));
    if is_of_process { read(path, limit) } else { read_regular(path, limit) }
}

fn size(bytes: u64) -> String {
    match (bytes >> 20, bytes >> 10) {
        (0, 0) => format!("{bytes} bytes"),
        (0, kibibytes) => format!("{kibibytes} KiB"),
        (mebibytes, _) => format!("{mebibytes} MiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_read_up_to_its_limit() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "12345").unwrap();

        assert_eq!(read(file.path(), 5).unwrap(), b"12345");
        assert_eq!(read(file.path(), 4).unwrap_err().to_string(), "file is larger than 4 bytes");
    }

    /// spec 70 §11
    #[test]
    fn regular_file_excludes_pipes_and_devices_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        assert!(std::process::Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
        std::fs::write(path("file"), "12345").unwrap();
        std::os::unix::fs::symlink(path("file"), path("link")).unwrap();

        for no_file in [path("pipe"), "/dev/zero".into(), folder.path().into()] {
            assert_eq!(read_regular(&no_file, 5).unwrap_err().to_string(), "it is not a regular file");
        }
        assert_eq!(read_given(&path("pipe"), 5).unwrap_err().to_string(), "it is not a regular file");
        assert_eq!(read_given(Path::new("/dev/null"), 5).unwrap(), b"");
        assert_eq!(read_given(Path::new("/dev/zero"), 5).unwrap_err().to_string(), "file is larger than 5 bytes");
        assert_eq!(read_given(&path("link"), 5).unwrap(), b"12345");
        assert_eq!(read_regular(&path("link"), 5).unwrap(), b"12345");
        assert_eq!(read_regular(&path("link"), 4).unwrap_err().to_string(), "file is larger than 4 bytes");
    }

    #[test]
    fn endless_file_is_rejected() {
        assert_eq!(read(Path::new("/dev/zero"), 1 << 20).unwrap_err().to_string(), "file is larger than 1 MiB");
        assert_eq!(read(Path::new("/dev/zero"), 64 << 10).unwrap_err().to_string(), "file is larger than 64 KiB");
    }
}
