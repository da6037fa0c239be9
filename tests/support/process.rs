use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail};

use super::wait::eventually;

pub(crate) struct Process {
    name: String,
    child: Child,
    /// Kills the child if the test process dies without destructors: it reads a pipe that only the test holds open.
    guardian: Child,
    log: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Terminate,
    /// Freezes the process: it keeps its connections and does not answer.
    Stop,
    Continue,
    User1,
}

impl Process {
    pub(crate) fn spawn(
        program: &Path,
        arguments: &[String],
        environment: &[(String, String)],
        log: &Path,
    ) -> Result<Self> {
        let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
        let out =
            File::options().create(true).append(true).open(log).with_context(|| format!("open the log of {name}"))?;
        let child = Command::new(program)
            .args(arguments)
            .envs(environment.iter().map(|(key, value)| (key, value)))
            .current_dir(log.parent().unwrap_or(Path::new(".")))
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .spawn()
            .with_context(|| format!("start {}", program.display()))?;
        let guardian = Command::new("sh")
            .args(["-c", r#"cat >/dev/null; kill -s KILL "$1""#, "guardian", &child.id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("start the guardian of {name}"))?;
        Ok(Self { name, child, guardian, log: log.to_owned() })
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let signal = match signal {
            Signal::Terminate => "TERM",
            Signal::Stop => "STOP",
            Signal::Continue => "CONT",
            Signal::User1 => "USR1",
        };
        let id = self.child.id().to_string();
        let status = Command::new("sh").args(["-c", r#"kill -s "$1" "$2""#, "kill", signal, &id]).status()?;
        if !status.success() {
            bail!("{} did not take signal {signal}", self.name);
        }
        Ok(())
    }

    pub(super) fn kill(&mut self) {
        // The guardian first: another process may soon get the id it would kill. An error means "already gone".
        let _ = self.guardian.kill();
        let _ = self.guardian.wait();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub(crate) fn check_running(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{} ended ({status}); the end of its log:\n{}", self.name, self.log_end()),
        }
    }

    pub(crate) async fn wait_exit(&mut self, limit: Duration) -> Result<ExitStatus> {
        let what = format!("{} ends", self.name);
        eventually(&what, limit, async || self.child.try_wait()?.ok_or_else(|| anyhow!("still running"))).await
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Everything that was printed so far, also by earlier processes with the same log.
    pub(crate) fn log(&self) -> String {
        std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    pub(super) fn log_end(&self) -> String {
        let log = self.log();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
