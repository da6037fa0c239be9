//! Figures of this process from `/proc` (on Linux; elsewhere they are absent).

use std::fs;

use prometheus::{CounterVec, GaugeVec};

use super::{NO_LABELS, Registrar, declared};

/// The figures of the `process_*` metrics. A figure that cannot be read is absent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct ProcessFigures {
    /// User and system time together, in seconds.
    pub(super) cpu_seconds: Option<f64>,
    /// Resident memory, in bytes.
    pub(super) resident_bytes: Option<f64>,
    /// Virtual memory, in bytes.
    pub(super) virtual_bytes: Option<f64>,
    /// Open file descriptors.
    pub(super) open_fds: Option<f64>,
    /// Most open file descriptors (soft limit); absent without a limit.
    pub(super) max_fds: Option<f64>,
    /// Start of the process in seconds since 1970.
    pub(super) start_seconds: Option<f64>,
}

/// The `process_*` metrics.
pub(super) struct ProcessFamilies {
    cpu: CounterVec,
    gauges: [GaugeVec; 5],
}

impl ProcessFamilies {
    pub(super) fn new(registrar: &Registrar) -> Self {
        let gauges = [
            declared::PROCESS_RESIDENT,
            declared::PROCESS_VIRTUAL,
            declared::PROCESS_OPEN_FDS,
            declared::PROCESS_MAX_FDS,
            declared::PROCESS_START,
        ];
        Self {
            cpu: declared::PROCESS_CPU.float_counters(registrar),
            gauges: gauges.map(|declaration| declaration.float_gauges(registrar)),
        }
    }

    /// A figure that could not be read has no series instead of a wrong zero.
    pub(super) fn set(&self, figures: ProcessFigures) {
        self.cpu.reset();
        if let Some(seconds) = figures.cpu_seconds {
            self.cpu.with_label_values(&NO_LABELS).inc_by(seconds);
        }
        let ProcessFigures { resident_bytes, virtual_bytes, open_fds, max_fds, start_seconds, .. } = figures;
        let figures = [resident_bytes, virtual_bytes, open_fds, max_fds, start_seconds];
        for (family, figure) in self.gauges.iter().zip(figures) {
            family.reset();
            if let Some(figure) = figure {
                family.with_label_values(&NO_LABELS).set(figure);
            }
        }
    }
}

/// Clock ticks per second in `/proc/<pid>/stat`: the kernel's USER_HZ, 100 on every architecture Kubernetes runs on.
const TICKS_PER_SECOND: f64 = 100.0;

impl ProcessFigures {
    /// Reads a few small files, without I/O behind them.
    pub(super) fn read() -> Self {
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        let open_fds = fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as f64);
        Self {
            open_fds,
            ..Self::parse(
                &text("/proc/self/stat"),
                &text("/proc/self/status"),
                &text("/proc/self/limits"),
                &text("/proc/stat"),
            )
        }
    }

    fn parse(stat: &str, status: &str, limits: &str, system: &str) -> Self {
        // The second field is the command in parentheses and may contain anything, so fields are counted from its end:
        // state is number 0, utime 11, stime 12, starttime 19 (proc_pid_stat(5) counts from 1, with 2 more).
        let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok());
        let boot = line_value(system, "btime");

        Self {
            cpu_seconds: ticks(11).zip(ticks(12)).map(|(user, kernel)| (user + kernel) / TICKS_PER_SECOND),
            resident_bytes: kibibytes(status, "VmRSS:"),
            virtual_bytes: kibibytes(status, "VmSize:"),
            open_fds: None,
            max_fds: line_value(limits, "Max open files"),
            start_seconds: boot.zip(ticks(19)).map(|(boot, start)| boot + start / TICKS_PER_SECOND),
        }
    }
}

/// The first number after a key; absent if a word stands there, such as `unlimited`.
fn line_value(text: &str, key: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    rest.split_whitespace().next()?.parse().ok()
}

fn kibibytes(status: &str, key: &str) -> Option<f64> {
    line_value(status, key).map(|value| value * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_the_text_of_proc() {
        let stat = "17 (a ) b) S 1 17 17 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 4 0 12345 1000 200 184";
        let status = "Name:\ta\nVmSize:\t    2048 kB\nVmRSS:\t     512 kB\n";
        let limits =
            "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 4096  files\n";

        let figures = ProcessFigures::parse(stat, status, limits, "cpu 1 2\nbtime 1700000000\n");

        assert_eq!(
            figures,
            ProcessFigures {
                cpu_seconds: Some(2.0),
                resident_bytes: Some(512.0 * 1024.0),
                virtual_bytes: Some(2048.0 * 1024.0),
                open_fds: None,
                max_fds: Some(1024.0),
                start_seconds: Some(1_700_000_123.45),
            }
        );
    }

    #[test]
    fn process_figures_are_absent_if_the_text_is_missing_or_strange() {
        assert_eq!(ProcessFigures::parse("", "", "", ""), ProcessFigures::default());
        assert_eq!(
            ProcessFigures::parse("1 (a) S x", "VmRSS: lots kB", "Max open files unlimited", "btime"),
            ProcessFigures::default()
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn process_figures_are_complete_for_this_process() {
        let figures = ProcessFigures::read();

        assert!(figures.resident_bytes > Some(0.0));
        assert!(figures.open_fds > Some(0.0));
        assert!(figures.start_seconds > Some(0.0));
        assert!(figures.cpu_seconds.is_some());
    }
}
