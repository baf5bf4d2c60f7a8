//! Loads libibverbs and librdmacm when they are needed. weft can be built and run without these
//! libraries.

use core::ffi::{c_int, c_void};

use std::sync::OnceLock;

use libc::sockaddr;
use libloading::Library;

use super::abi::{
    AsyncEvent, CmEvent, CmId, CompChannel, ConnParam, Context, Cq, DeviceAttr, EventChannel, Mr, Pd, PortAttr,
    QpInitAttr, Srq, SrqAttr, SrqInitAttr,
};

/// Why a library cannot be used. The text also contains the package to install.
#[derive(Debug, thiserror::Error)]
#[error("{library} cannot be loaded ({why}); install it (Debian: `apt install ibverbs-providers librdmacm1`)")]
pub struct LibraryError {
    library: &'static str,
    why: String,
}

/// Defines a structure with the functions of both libraries, and finds each function when the
/// libraries are loaded.
macro_rules! functions {
    ($($library:ident = $file:literal { $($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)* })*) => {
        /// The functions of both libraries that the agent uses.
        #[derive(Debug)]
        pub(super) struct Functions {
            $($(pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*)*
            // The functions exist only while the libraries are loaded.
            _libraries: Vec<Library>,
        }

        impl Functions {
            /// Loads both libraries once. The libraries stay loaded, because their threads and
            /// handlers need the code.
            pub(super) fn loaded() -> Result<&'static Self, &'static LibraryError> {
                static LOADED: OnceLock<Result<Functions, LibraryError>> = OnceLock::new();
                LOADED.get_or_init(Functions::load).as_ref()
            }

            fn load() -> Result<Self, LibraryError> {
                $(let $library = open($file)?;)*
                Ok(Functions {
                    $($($name: {
                        // SAFETY: the type is that of the header. The library stays loaded.
                        let found = unsafe { $library.get(concat!(stringify!($name), "\0").as_bytes()) };
                        *found.map_err(|why| missing($file, &why))?
                    },)*)*
                    _libraries: vec![$($library),*],
                })
            }
        }
    };
}

functions! {
    ibverbs = "libibverbs.so.1" {
        ibv_query_device: fn(*mut Context, *mut DeviceAttr) -> c_int;
        ibv_query_port: fn(*mut Context, u8, *mut PortAttr) -> c_int;
        ibv_alloc_pd: fn(*mut Context) -> *mut Pd;
        ibv_dealloc_pd: fn(*mut Pd) -> c_int;
        ibv_reg_mr: fn(*mut Pd, *mut c_void, usize, c_int) -> *mut Mr;
        ibv_dereg_mr: fn(*mut Mr) -> c_int;
        ibv_create_comp_channel: fn(*mut Context) -> *mut CompChannel;
        ibv_destroy_comp_channel: fn(*mut CompChannel) -> c_int;
        ibv_create_cq: fn(*mut Context, c_int, *mut c_void, *mut CompChannel, c_int) -> *mut Cq;
        ibv_destroy_cq: fn(*mut Cq) -> c_int;
        ibv_get_cq_event: fn(*mut CompChannel, *mut *mut Cq, *mut *mut c_void) -> c_int;
        ibv_ack_cq_events: fn(*mut Cq, u32);
        ibv_create_srq: fn(*mut Pd, *mut SrqInitAttr) -> *mut Srq;
        ibv_modify_srq: fn(*mut Srq, *mut SrqAttr, c_int) -> c_int;
        ibv_destroy_srq: fn(*mut Srq) -> c_int;
        ibv_get_async_event: fn(*mut Context, *mut AsyncEvent) -> c_int;
        ibv_ack_async_event: fn(*mut AsyncEvent);
    }
    rdmacm = "librdmacm.so.1" {
        rdma_get_devices: fn(*mut c_int) -> *mut *mut Context;
        rdma_free_devices: fn(*mut *mut Context);
        rdma_create_event_channel: fn() -> *mut EventChannel;
        rdma_destroy_event_channel: fn(*mut EventChannel);
        rdma_create_id: fn(*mut EventChannel, *mut *mut CmId, *mut c_void, c_int) -> c_int;
        rdma_destroy_id: fn(*mut CmId) -> c_int;
        rdma_bind_addr: fn(*mut CmId, *mut sockaddr) -> c_int;
        rdma_listen: fn(*mut CmId, c_int) -> c_int;
        rdma_get_src_port: fn(*mut CmId) -> u16;
        rdma_resolve_addr: fn(*mut CmId, *mut sockaddr, *mut sockaddr, c_int) -> c_int;
        rdma_resolve_route: fn(*mut CmId, c_int) -> c_int;
        rdma_create_qp: fn(*mut CmId, *mut Pd, *mut QpInitAttr) -> c_int;
        rdma_destroy_qp: fn(*mut CmId);
        rdma_connect: fn(*mut CmId, *mut ConnParam) -> c_int;
        rdma_accept: fn(*mut CmId, *mut ConnParam) -> c_int;
        rdma_reject: fn(*mut CmId, *const c_void, u8) -> c_int;
        rdma_disconnect: fn(*mut CmId) -> c_int;
        rdma_get_cm_event: fn(*mut EventChannel, *mut *mut CmEvent) -> c_int;
        rdma_ack_cm_event: fn(*mut CmEvent) -> c_int;
    }
}

fn open(library: &'static str) -> Result<Library, LibraryError> {
    // SAFETY: every RDMA program on the host runs the initialisers of this library.
    unsafe { Library::new(library) }.map_err(|why| missing(library, &why))
}

fn missing(library: &'static str, why: &libloading::Error) -> LibraryError {
    // The loader's message begins with the name of the library. The error already has this name, so
    // remove the name from the message.
    let why = why.to_string();
    let why = why.strip_prefix(library).map_or(why.as_str(), |rest| rest.trim_start_matches(": "));
    LibraryError { library, why: why.to_owned() }
}
