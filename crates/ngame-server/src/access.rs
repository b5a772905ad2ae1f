//! Who may ask: the token, the names the server answers to, and pages of other origins.

use axum::http::{HeaderMap, HeaderValue, Method, header};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::settings::ServeError;

/// The fewest characters of a token that cannot be guessed.
const FEWEST: usize = 16;

/// A secret that clients must know. Only its digest is kept.
#[derive(Clone)]
pub struct Token {
    digest: [u8; 32],
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// Takes the contents of a token file; space around the token does not count.
    pub fn new(contents: &str) -> Result<Self, ServeError> {
        let token = contents.trim();
        let fits = token.len() >= FEWEST && token.chars().all(|c| c.is_ascii_graphic());
        if !fits {
            return Err(ServeError::Refused {
                problem: format!(
                    "the token file should hold one word of at least {FEWEST} plain characters"
                ),
                help: "make one: `openssl rand -hex 24 > FILE`".to_owned(),
            });
        }
        Ok(Self { digest: Sha256::digest(token).into() })
    }

    /// Whether a request knows the token. Digests are compared, in the same time wherever they
    /// differ, so that neither the length nor a beginning can be found out by trying.
    pub(crate) fn is_known(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(header::AUTHORIZATION).map_or(&[][..], HeaderValue::as_bytes);
        let (scheme, token) = given.split_at(given.len().min(7));
        let digest: [u8; 32] = Sha256::digest(token).into();
        scheme.eq_ignore_ascii_case(b"bearer ") && bool::from(digest.ct_eq(&self.digest))
    }
}

/// Whether a request came to a name that only this machine can have.
///
/// Without a token, a page anywhere could have its own name point to this machine and then ask as if
/// it were ours. A browser says which name it used; addresses in numbers and `localhost` cannot be
/// made to point elsewhere.
pub(crate) fn is_own_name(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST) else { return true };
    let Ok(host) = host.to_str() else { return false };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost") || name.parse::<std::net::IpAddr>().is_ok()
}

/// What a browser is told that asks whether pages of another origin may ask us.
pub(crate) fn preflight(headers: &mut HeaderMap) {
    let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
    set(header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST");
    set(header::ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type, x-request-id");
    set(header::ACCESS_CONTROL_MAX_AGE, "600");
}

/// Whether a request is such a question.
pub(crate) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Says that pages of this origin may see the answer.
pub(crate) fn allow(origin: &str, headers: &mut HeaderMap) {
    if let Ok(origin) = HeaderValue::from_str(origin) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::VARY, HeaderValue::from_static("Origin"));
        let shown = HeaderValue::from_static("retry-after, server-timing, x-request-id");
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, shown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_itself_is_the_token() {
        let token = Token::new("  0123456789abcdef\n").unwrap();
        let known = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            token.is_known(&headers)
        };
        assert!(known("Bearer 0123456789abcdef") && known("bearer 0123456789abcdef"));
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
            "Bearer 0123456789abcdeF",
            "Basic 0123456789abcdef",
            "0123456789abcdef",
        ] {
            assert!(!known(wrong), "{wrong}");
        }
        assert!(!token.is_known(&HeaderMap::new()));
        assert_eq!(format!("{token:?}"), "Token", "nothing of it is printed");
    }

    #[test]
    fn tokens_that_can_be_guessed_are_refused() {
        for weak in ["", "\n", "short", "has a space in the middle", "fünfzehn-zeichen-und-mehr"] {
            assert!(Token::new(weak).unwrap_err().to_string().contains("openssl"), "{weak}");
        }
    }

    #[test]
    fn names_that_can_point_elsewhere_are_not_ours() {
        let own = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
            is_own_name(&headers)
        };
        for ours in ["127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:80", "a.localhost:2"] {
            assert!(own(ours), "{ours}");
        }
        for other in
            ["example.org", "example.org:8080", "localhost.example.org", "127.0.0.1.nip.io"]
        {
            assert!(!own(other), "{other}");
        }
        assert!(is_own_name(&HeaderMap::new()));
    }
}
