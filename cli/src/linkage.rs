//! Parts of weft that a static build lacks.
//!
//! A static binary cannot load shared libraries, and has no shared library of its own.

use crate::exit::BadInput;

/// True for a binary without shared libraries (`dist/build static`).
pub(crate) const STATIC: bool = cfg!(target_feature = "crt-static");

/// What `weft --version` prints after the name.
pub(crate) const VERSION: &str = if STATIC {
    concat!(env!("CARGO_PKG_VERSION"), "\nstatic build: no agent on a device, no preload library")
} else {
    env!("CARGO_PKG_VERSION")
};

/// Rejects requests that need libibverbs and librdmacm.
pub(crate) fn device() -> Result<(), BadInput> {
    if STATIC {
        return Err(BadInput(
            "this is the static build of weft, which cannot load libibverbs and librdmacm: install the Debian package \
             for an agent on a device, or add --soft for weft's own RNIC"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Explains where to get the preload library.
pub(crate) fn preload() -> Option<&'static str> {
    STATIC.then_some(
        "this is the static build of weft, which has no preload library: programs need \
         libweft_preload.so of the same version, from /usr/lib/weft of the Debian package or the image",
    )
}
