//! Messages about the parts of weft that a static build lacks.
//!
//! A static binary cannot load libibverbs and librdmacm, so its agent cannot use the host's NIC.
//! The static build has no preload library, because the preload library is a shared library.

use crate::exit::{BadInput, reject};

/// True for a binary without shared libraries (`dist/build static`).
pub(crate) const STATIC: bool = cfg!(target_feature = "crt-static");

/// The text that `weft --version` prints after the name.
pub(crate) const VERSION: &str = if STATIC {
    concat!(env!("CARGO_PKG_VERSION"), "\nstatic build: it cannot use RDMA devices, and has no preload library")
} else {
    env!("CARGO_PKG_VERSION")
};

/// Fails if this build cannot load libibverbs and librdmacm.
pub(crate) fn device() -> Result<(), BadInput> {
    if STATIC {
        reject!(
            "this is the static build of weft, which cannot load libibverbs and librdmacm; install the Debian package \
             for an agent on a device, or add --soft for weft's own RNIC"
        );
    }
    Ok(())
}

/// If this build has no preload library, returns a message that explains where to get it.
pub(crate) fn preload() -> Option<&'static str> {
    STATIC.then_some(
        "this is the static build of weft, which has no preload library; programs need \
         libweft_preload.so of the same version, from /usr/lib/weft of the Debian package or the image",
    )
}
