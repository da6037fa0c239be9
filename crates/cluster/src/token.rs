//! Our identity: the `Authorization` header, from a token file that is read again in time (spec 70 §8.1), and the
//! `User-Agent`, from which the server derives our field manager (spec 70 §8.3). kube has a layer for token files, too;
//! ours also reads the file again when the server answers 401 (fault 9).

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{
    HeaderValue, Request, Response, StatusCode,
    header::{AUTHORIZATION, USER_AGENT},
};
use tokio::time::Instant;
use tower::{Service, ServiceExt as _};

use crate::files;

const YOUNG: Duration = Duration::from_secs(50); // a token file is read again after this time at the latest

const LONGEST_TOKEN: u64 = 256 << 10; // longest token; longer headers are rejected anyway

/// Why credentials cannot be used. Texts do not contain them.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// An unusable token file.
    #[error("cannot read the token file {}: {reason}", path.display())]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// A token or password with characters a header cannot hold.
    #[error("the token or password has characters that are not allowed in a header")]
    BadToken,
}

/// Credentials that go into a header; TLS handles client certificates.
#[derive(Clone)]
pub(super) enum Credentials {
    /// None, or a client certificate.
    None,
    /// A token or a name and password, as given.
    Fixed(HeaderValue),
    File(Arc<TokenFile>),
}

/// A token in a file that another process replaces.
pub(super) struct TokenFile {
    path: PathBuf,
    token: Mutex<Token>,
}

struct Token {
    header: HeaderValue,
    read_at: Option<Instant>, // `None`: read again before the next request
}

impl Credentials {
    pub(super) fn token(token: &str) -> Result<Self, CredentialsError> {
        Ok(Self::Fixed(bearer(token).ok_or(CredentialsError::BadToken)?))
    }

    pub(super) fn password(name: &str, password: &str) -> Result<Self, CredentialsError> {
        let value = format!("Basic {}", STANDARD.encode(format!("{name}:{password}")));
        Ok(Self::Fixed(sensitive(&value).ok_or(CredentialsError::BadToken)?))
    }

    /// A token file; fails unless it is readable now.
    pub(super) fn file(path: &Path) -> Result<Self, CredentialsError> {
        let header = read(path)?;
        let token = Mutex::new(Token { header, read_at: Some(Instant::now()) });
        Ok(Self::File(Arc::new(TokenFile { path: path.into(), token })))
    }

    fn header(&self) -> Option<HeaderValue> {
        match self {
            Self::None => None,
            Self::Fixed(header) => Some(header.clone()),
            Self::File(file) => Some(file.header()),
        }
    }

    /// Reacts to a 401: a token file is read again.
    fn refused(&self) {
        match self {
            Self::None | Self::Fixed(_) => {}
            Self::File(file) => file.token.lock().unwrap_or_else(PoisonError::into_inner).read_at = None,
        }
    }
}

impl TokenFile {
    fn header(&self) -> HeaderValue {
        let mut token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        if token.read_at.is_none_or(|at| at.elapsed() >= YOUNG) {
            match read(&self.path) {
                Ok(header) => token.header = header,
                Err(error) => tracing::warn!(%error, "the old token stays in use"),
            }
            token.read_at = Some(Instant::now());
        }
        token.header.clone()
    }
}

/// Reads a token file. It is small and in memory, so this does not block the arbiter noticeably.
fn read(path: &Path) -> Result<HeaderValue, CredentialsError> {
    let unreadable = |reason: String| CredentialsError::TokenFile { path: path.into(), reason };
    let token = files::read_regular(path, LONGEST_TOKEN).map_err(|error| unreadable(error.to_string()))?;
    let token = String::from_utf8(token).map_err(|_| unreadable("it holds no token".into()))?;
    match token.trim() {
        "" => Err(unreadable("it is empty".into())),
        token => bearer(token).ok_or_else(|| unreadable("it holds no token".into())),
    }
}

fn bearer(token: &str) -> Option<HeaderValue> {
    sensitive(&format!("Bearer {token}"))
}

fn sensitive(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Returns the service with our identity in each request.
pub(super) fn identified<S, I, O>(
    service: S,
    credentials: Credentials,
    user_agent: HeaderValue,
) -> impl Service<Request<I>, Response = Response<O>, Error = S::Error, Future: Send> + Clone
where
    S: Service<Request<I>, Response = Response<O>, Future: Send> + Clone,
{
    let asked = credentials.clone();
    let judged = service.map_response(move |answer: Response<O>| {
        if answer.status() == StatusCode::UNAUTHORIZED {
            asked.refused();
        }
        answer
    });
    judged.map_request(move |mut request: Request<I>| {
        request.headers_mut().insert(USER_AGENT, user_agent.clone());
        if let Some(header) = credentials.header() {
            request.headers_mut().insert(AUTHORIZATION, header);
        }
        request
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU16, Ordering};

    use tokio::time::sleep;
    use tower::{BoxError, service_fn};

    use super::*;

    fn identified(
        credentials: Credentials,
        code: Arc<AtomicU16>,
    ) -> impl Service<Request<()>, Response = Response<String>, Error = BoxError> {
        let inner = service_fn(move |request: Request<()>| {
            let text = |name| request.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
            let shown = format!("{} | {}", text(AUTHORIZATION), text(USER_AGENT));
            let answer = Response::builder().status(code.load(Ordering::Relaxed)).body(shown);
            async move { Ok::<_, BoxError>(answer.unwrap()) }
        });
        super::identified(inner, credentials, HeaderValue::from_static("me/1"))
    }

    async fn sent(service: &mut impl Service<Request<()>, Response = Response<String>, Error = BoxError>) -> String {
        service.call(Request::new(())).await.unwrap().into_body()
    }

    fn ok() -> Arc<AtomicU16> {
        Arc::new(AtomicU16::new(200))
    }

    #[tokio::test(start_paused = true)]
    async fn fixed_credentials_become_a_header() {
        let cases = [
            (Credentials::None, " | me/1"),
            (Credentials::token("abc").unwrap(), "Bearer abc | me/1"),
            (Credentials::password("u", "p").unwrap(), "Basic dTpw | me/1"),
        ];

        for (credentials, expected) in cases {
            assert_eq!(sent(&mut identified(credentials, ok())).await, expected);
        }
    }

    /// spec 70 scenario 20
    #[tokio::test(start_paused = true)]
    async fn token_file_is_read_again_after_fifty_seconds() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "old\n").unwrap();
        let mut service = identified(Credentials::file(file.path()).unwrap(), ok());

        std::fs::write(&file, "new\n").unwrap();
        sleep(YOUNG - Duration::from_millis(1)).await;
        assert_eq!(sent(&mut service).await, "Bearer old | me/1");
        sleep(Duration::from_millis(1)).await;
        assert_eq!(sent(&mut service).await, "Bearer new | me/1");

        drop(file);
        sleep(YOUNG).await;
        assert_eq!(sent(&mut service).await, "Bearer new | me/1");
    }

    /// fault 9
    #[tokio::test(start_paused = true)]
    async fn token_file_is_read_again_after_a_401() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "old").unwrap();
        let code = Arc::new(AtomicU16::new(401));
        let mut service = identified(Credentials::file(file.path()).unwrap(), code.clone());

        std::fs::write(&file, "new").unwrap();
        assert_eq!(sent(&mut service).await, "Bearer old | me/1");
        assert_eq!(sent(&mut service).await, "Bearer new | me/1");
    }

    #[test]
    fn token_file_without_end_is_rejected() {
        let error = read(Path::new("/dev/zero")).unwrap_err().to_string();

        assert_eq!(error, "cannot read the token file /dev/zero: it is not a regular file");
    }

    #[test]
    fn token_file_that_is_unusable_is_named_without_its_content() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "se\u{7}cret").unwrap();

        let error = read(file.path()).unwrap_err().to_string();

        assert!(error.contains(&file.path().display().to_string()));
        assert!(!error.contains("cret"), "{error}");
    }
}
