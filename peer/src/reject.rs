//! A check that ends a function with an error.

/// Returns `error` if `condition` is true.
///
/// # Errors
/// `condition` is true.
pub(crate) fn reject_if<E>(condition: bool, error: E) -> Result<(), E> {
    if condition { Err(error) } else { Ok(()) }
}
