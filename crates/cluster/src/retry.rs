//! Which failed requests are sent again, and when (faults 6, 8, 9). Everything else is up to the caller.

use std::time::Duration;

use super::ApiError;

const MOST_WAITS: u8 = 10; // waits for `Retry-After` per request (spec 70 §8.3)

#[derive(Debug, Default)]
pub(super) struct Attempts {
    waits: u8,
    reconnected: bool,
    reauthorized: bool,
}

impl Attempts {
    /// Returns the wait before the request is sent again, or `None` if it is not. `left` is the time until its
    /// deadline: a longer wait would only replace the server's answer by a time-out.
    /// * 429, or 5xx, with `Retry-After`: after that time, ten times, because the server says it did nothing.
    /// * 401: once, at once; `token` has read the token again, and nothing was done.
    /// * broken connection: a read once. A write may have happened: never.
    pub(super) fn again(&mut self, read: bool, error: &ApiError, left: Duration) -> Option<Duration> {
        let once = |is_done: &mut bool| (!std::mem::replace(is_done, true)).then_some(Duration::ZERO);
        if matches!(error, ApiError::Transport { .. }) && read {
            return once(&mut self.reconnected);
        }
        let status = error.status()?;
        match status.code {
            401 => once(&mut self.reauthorized),
            429 | 500.. => {
                let wait = status.retry_after.filter(|wait| *wait < left && self.waits < MOST_WAITS)?;
                self.waits += 1;
                Some(wait)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status;

    const LONG: Duration = Duration::from_secs(60);
    const SECOND: Duration = Duration::from_secs(1);

    fn status(code: u16, retry_after: Option<Duration>) -> ApiError {
        ApiError::Status(Status { code, retry_after, ..Status::default() }.into())
    }

    fn broken() -> ApiError {
        ApiError::Transport { message: "connection reset".into(), sent: true }
    }

    #[test]
    fn retry_depends_on_the_error_and_the_method() {
        let cases = [
            (status(429, Some(SECOND)), Some(SECOND), Some(SECOND)),
            (status(503, Some(SECOND)), Some(SECOND), Some(SECOND)),
            (status(429, None), None, None),
            (status(500, None), None, None),
            (status(429, Some(LONG)), None, None),
            (status(409, Some(SECOND)), None, None),
            (status(401, None), Some(Duration::ZERO), Some(Duration::ZERO)),
            (broken(), Some(Duration::ZERO), None),
            (ApiError::Timeout, None, None),
        ];

        for (error, read, write) in cases {
            assert_eq!(Attempts::default().again(true, &error, LONG), read, "read, {error:?}");
            assert_eq!(Attempts::default().again(false, &error, LONG), write, "write, {error:?}");
        }
    }

    #[test]
    fn retries_are_bounded() {
        for (error, most) in [(status(429, Some(SECOND)), 10), (status(401, None), 1), (broken(), 1)] {
            let mut attempts = Attempts::default();

            let count = (0..100).take_while(|_| attempts.again(true, &error, LONG).is_some()).count();

            assert_eq!(count, most, "{error:?}");
        }
    }
}
