//! The actions that a page offers.

use crate::access::{Role, Session};

/// An operator's right to start and stop runs. The forms need its key; pages for other clients have
/// no such forms.
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
