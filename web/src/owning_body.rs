//! A response body that owns a value, such as the slot of its request, until the body is sent or
//! dropped.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};

/// A body and the value that is dropped with the body.
pub(crate) struct OwningBody<T> {
    body: Body,
    _owned: T,
}

impl<T: Send + Unpin + 'static> OwningBody<T> {
    /// Attaches `owned` to the body.
    pub(crate) fn body(body: Body, owned: T) -> Body {
        Body::new(OwningBody { body, _owned: owned })
    }
}

impl<T: Unpin> hyper::body::Body for OwningBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
