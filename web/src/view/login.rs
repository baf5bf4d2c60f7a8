//! The page for signing in and out.

use askama::Template;

use crate::access::{Role, Session};

#[derive(Template)]
#[template(path = "login.html")]
struct Page<'a> {
    has_tokens: bool,
    role: Option<Role>,
    form_key: &'a str,
    next: &'a str,
    wrong: &'a str,
}

/// Renders the page. `has_tokens` is `true` if the server requires tokens. `next` is the address to
/// open after signing in. `wrong` is the reason why a token was rejected, or empty.
pub(crate) fn login(
    has_tokens: bool,
    session: Option<&Session>,
    next: &str,
    wrong: &str,
) -> Result<String, askama::Error> {
    let form_key = session.and_then(|session| session.form_key.as_deref()).unwrap_or_default();
    Page { has_tokens, role: session.map(|session| session.role), form_key, next, wrong }.render()
}
