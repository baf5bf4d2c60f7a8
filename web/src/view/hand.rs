//! What somebody may do who looks at a page.

use crate::access::{Role, Session};

/// The hand of an operator: forms that start and stop runs need its key. Others have none, and see no such forms.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hand<'a> {
    pub(crate) key: &'a str,
}

impl<'a> Hand<'a> {
    pub(crate) fn of(session: Option<&'a Session>) -> Option<Self> {
        let session = session.filter(|session| session.role == Role::Operator)?;
        Some(Hand { key: session.form_key.as_deref().unwrap_or_default() })
    }
}
