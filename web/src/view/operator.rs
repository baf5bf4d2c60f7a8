//! Decides whether a page shows the forms that only operators are allowed to send.

use crate::access::{Role, Session};

/// The permission to show forms that start and stop runs. Each form contains `key`. Pages for
/// clients that are not operators have no such forms.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OperatorForms<'a> {
    pub(crate) key: &'a str,
}

impl<'a> OperatorForms<'a> {
    pub(crate) fn of(session: Option<&'a Session>) -> Option<Self> {
        let session = session.filter(|session| session.role == Role::Operator)?;
        Some(OperatorForms { key: session.form_key.as_deref().unwrap_or_default() })
    }
}
