//! Removes a token from texts of webhooks and authenticators, which go to logs, Events and the dashboard.

use std::collections::HashSet;

use base64::{Engine, prelude::BASE64_STANDARD};
use cluster::ApiError;

/// Shorter parts of a token, in characters, are useless to an attacker.
const TELLING: usize = 16;
const LEFT_OUT: &str = "(left out)";

/// Removes the token, plain or in base64 as in Secrets, and long parts of it, because texts get cut.
pub fn without(text: &str, token: &str) -> String {
    without_parts(&without_parts(text, token), &BASE64_STANDARD.encode(token))
}

/// Returns the error with its texts masked.
pub fn masked(error: ApiError, token: &str) -> ApiError {
    let hide = |text: &str| without(text, token);
    match error {
        ApiError::Status(mut status) => {
            status.message = hide(&status.message);
            for cause in &mut status.causes {
                (cause.message, cause.field) = (hide(&cause.message), hide(&cause.field));
            }
            ApiError::Status(status)
        }
        ApiError::Transport { message, sent } => ApiError::Transport { message: hide(&message), sent },
        ApiError::Discovery(text) => ApiError::Discovery(hide(&text)),
        ApiError::Decode(text) => ApiError::Decode(hide(&text)),
        ApiError::TooLarge(text) => ApiError::TooLarge(hide(&text)),
        ApiError::BadRequest(text) => ApiError::BadRequest(hide(&text)),
        silent @ (ApiError::Timeout | ApiError::NotSent | ApiError::Fenced(_) | ApiError::NoMatch(_)) => silent,
    }
}

fn without_parts(text: &str, secret: &str) -> String {
    let (text, secret): (Vec<char>, Vec<char>) = (text.chars().collect(), secret.chars().collect());
    let length = TELLING.min(secret.len()).max(1);
    let parts: HashSet<&[char]> = secret.windows(length).collect();
    let mut is_hidden = vec![false; text.len()];
    for (start, window) in text.windows(length).enumerate() {
        if parts.contains(window) {
            is_hidden[start..start + length].fill(true);
        }
    }
    let mut kept = String::with_capacity(text.len());
    let mut was_hidden = false;
    for (character, is_hidden) in text.into_iter().zip(is_hidden) {
        match (was_hidden, is_hidden) {
            (_, false) => kept.push(character),
            (false, true) => kept.push_str(LEFT_OUT),
            (true, true) => {}
        }
        was_hidden = is_hidden;
    }
    kept
}
