//! A capture that still grows. What is on the page, its script is told.

use askama::Template;

use crate::view::url;

#[derive(Template)]
#[template(path = "capture_live.html")]
struct Page<'a> {
    name: &'a str,
    base: String,
}

/// The page.
pub(crate) fn live(id: &str, name: &str) -> Result<String, askama::Error> {
    Page { name, base: url::capture(id) }.render()
}
