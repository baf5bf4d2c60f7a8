//! The page for signing in and out.

use askama::Template;

use crate::access::{Role, Session};

#[derive(Template)]
#[template(path = "login.html")]
struct Page<'a> {
    asks: bool,
    role: Option<Role>,
    form_key: &'a str,
    next: &'a str,
    wrong: &'a str,
}

/// The page. `asks`: the server has tokens; `wrong`: why the last token was rejected, or empty.
pub(crate) fn login(asks: bool, session: Option<&Session>, next: &str, wrong: &str) -> Result<String, askama::Error> {
    let form_key = session.and_then(|session| session.form_key.as_deref()).unwrap_or_default();
    Page { asks, role: session.map(|session| session.role), form_key, next, wrong }.render()
}
