//! The live page of a capture. The script of the page receives the content as events.

use askama::Template;

use crate::view::url;

#[derive(Template)]
#[template(path = "capture_live.html")]
struct Page<'a> {
    name: &'a str,
    base: String,
}

/// Renders the page.
pub(crate) fn live(id: &str, name: &str) -> Result<String, askama::Error> {
    Page { name, base: url::capture(id) }.render()
}
