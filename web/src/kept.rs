//! A body that keeps something until it is sent or given up, such as the place of its request.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};

/// See the module. `T` is dropped with the body.
pub(crate) struct Kept<T> {
    body: Body,
    _thing: T,
}

impl<T: Send + Unpin + 'static> Kept<T> {
    /// The body, which keeps `thing`.
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
