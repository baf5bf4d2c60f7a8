//! A body that owns a value, such as the place of its request, until it is sent or dropped.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};

/// The body; `T` is dropped with it.
pub(crate) struct Kept<T> {
    body: Body,
    _thing: T,
}

impl<T: Send + Unpin + 'static> Kept<T> {
    /// Attaches `thing` to the body.
    pub(crate) fn body(body: Body, thing: T) -> Body {
        Body::new(Kept { body, _thing: thing })
    }
}

impl<T: Unpin> hyper::body::Body for Kept<T> {
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
