use std::{
    cell::RefCell,
    io::{self, IsTerminal as _, Write},
    time::Duration,
};

use anstyle::Style;

use super::{Missed, PlayedStep, Seen};
use crate::commands::colours::{self, BOLD, GREEN, PLAIN, RED, paint};

const WIDTH: usize = 100;
const PAUSE: Duration = Duration::from_millis(500);
const TITLE: usize = 34;
const TIME: usize = 8;

pub(super) struct Screen {
    out: RefCell<Box<dyn Write>>,
    colours: bool,
    audience: bool,
}

const FAINT: Style = Style::new().dimmed();

impl Screen {
    pub(super) fn of_process() -> Self {
        let audience = io::stdout().is_terminal();
        Self { out: RefCell::new(Box::new(io::stdout())), colours: colours::wanted(), audience }
    }

    pub(super) async fn pause(&self) {
        if self.audience {
            tokio::time::sleep(PAUSE).await;
        }
    }

    pub(super) fn title(&self, text: &str) {
        self.wrapped("", text, BOLD);
    }

    pub(super) fn heading(&self, number: usize, title: &str) {
        self.line("", PLAIN);
        self.line(&format!("{number}. {title}"), BOLD);
    }

    pub(super) fn say(&self, text: &str) {
        self.wrapped("   ", text, PLAIN);
    }

    pub(super) fn command(&self, text: &str) {
        self.wrapped("   $ ", text, FAINT);
    }

    pub(super) fn detail(&self, text: &str) {
        self.wrapped("     ", text, PLAIN);
    }

    pub(super) fn happened(&self, seen: &Seen) {
        self.wrapped("   ✓ ", &format!("{} ({})", seen.what, time(seen.took)), GREEN);
    }

    pub(super) fn missed(&self, missed: &Missed) {
        self.wrapped("   ✗ ", "This did not happen.", RED);
        self.wrapped("     expected: ", &missed.expected, RED);
        self.wrapped("     instead:  ", &missed.found, RED);
    }

    pub(super) fn summary(&self, played: &[PlayedStep]) {
        self.line("", PLAIN);
        self.line("Summary", BOLD);
        let seen_width = WIDTH - TITLE - TIME - 7;
        for (index, step) in played.iter().enumerate() {
            let (what, took, style) = match &step.seen {
                Some(seen) => (seen.what.as_str(), time(seen.took), PLAIN),
                None => ("did not happen", String::new(), RED),
            };
            let title = format!("{}. {}", index + 1, step.title);
            for (number, line) in wrap(what, seen_width).iter().enumerate() {
                let (title, took) = if number == 0 { (title.as_str(), took.as_str()) } else { ("", "") };
                self.line(format!("   {title:<TITLE$} {took:>TIME$}  {line}").trim_end(), style);
            }
        }
    }

    fn wrapped(&self, lead: &str, text: &str, style: Style) {
        let indent = lead.chars().count();
        for (number, line) in wrap(text, WIDTH - indent).iter().enumerate() {
            let lead = if number == 0 { lead.to_owned() } else { " ".repeat(indent) };
            self.line(format!("{lead}{line}").trim_end(), style);
        }
    }

    fn line(&self, text: &str, style: Style) {
        let mut out = self.out.borrow_mut();
        // If the output is closed, the story goes on: its exit code still shows how it ended.
        writeln!(out, "{}", paint(text, style, self.colours)).and_then(|()| out.flush()).ok();
    }
}

pub(super) fn time(duration: Duration) -> String {
    let milliseconds = duration.as_secs_f64() * 1000.0;
    match milliseconds {
        short if short < 10.0 => format!("{short:.1} ms"),
        medium if medium < 1000.0 => format!("{medium:.0} ms"),
        long => format!("{:.1} s", long / 1000.0),
    }
}

fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            let mut word: Vec<char> = word.chars().collect();
            let used = line.chars().count();
            if used > 0 && used + 1 + word.len() > width {
                lines.push(std::mem::take(&mut line));
            } else if used > 0 {
                line.push(' ');
            }
            while word.len() > width {
                lines.push(word.drain(..width).collect());
            }
            line.extend(word);
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
pub(super) mod captured {
    use std::rc::Rc;

    use super::*;

    #[derive(Clone, Default)]
    pub(in crate::demo) struct Printed(Rc<RefCell<Vec<u8>>>);

    impl Screen {
        pub(in crate::demo) fn captured() -> (Self, Printed) {
            let printed = Printed::default();
            (Self { out: RefCell::new(Box::new(printed.clone())), colours: false, audience: false }, printed)
        }
    }

    impl Printed {
        pub(in crate::demo) fn text(&self) -> String {
            String::from_utf8_lossy(&self.0.borrow()).into_owned()
        }
    }

    impl Write for Printed {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screen_lines_have_a_maximal_width() {
        let (screen, printed) = Screen::captured();
        let text = format!("{} {}", "word ".repeat(60), "x".repeat(250));

        screen.detail(&text);
        let seen = Seen { what: text, took: Duration::from_millis(1) };
        screen.happened(&seen);
        screen.summary(&[PlayedStep { title: "A step", seen: Some(seen) }]);

        assert!(printed.text().lines().all(|line| line.chars().count() <= WIDTH), "{}", printed.text());
        assert_eq!(printed.text().matches('x').count(), 750);
    }

    #[test]
    fn screen_times_are_short() {
        let cases = [(0, "0.0 ms"), (1_234, "1.2 ms"), (45_600, "46 ms"), (1_900_000, "1.9 s")];

        for (microseconds, expected) in cases {
            assert_eq!(time(Duration::from_micros(microseconds)), expected);
        }
    }
}
