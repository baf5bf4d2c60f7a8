//! Finds the device of this host by its name or address, opens it, and describes it.

use core::ffi::{CStr, c_int};
use core::ptr::{self, NonNull};
use std::collections::BTreeMap;
use std::io;

use rustix::event::{EventfdFlags, eventfd};

use super::abi::{Context, DeviceAttr, PortAttr, TRANSPORT_IWARP};
use super::load::{Functions, LibraryError};
use super::names;
use super::nic::{Nic, check};
use super::route::router;
use crate::Limits;
use crate::common::kernel;
use crate::protocol::{Address, Device, Failure};
use crate::serve::Backend;

/// How to select a device, and the limits of one control connection.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Name of the device, or one of its addresses. If absent, the agent uses the first device that
    /// supports iWARP.
    pub device: Option<String>,
    /// Limits of the control connection.
    pub limits: Limits,
}

/// Why no device could be opened. The text also contains the remedy.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The libraries cannot be loaded.
    #[error(transparent)]
    Libraries(#[from] &'static LibraryError),
    /// The libraries find no device.
    #[error(
        "this host has no RDMA device; load the driver of a NIC, make a software device (`modprobe siw`, \
        `rdma link add siw0 type siw netdev eth0`), or use --soft, which needs no device"
    )]
    None,
    /// The libraries find devices, but not the requested device.
    #[error("there is no RDMA device {wanted:?}; the devices of this host are {there}")]
    Other {
        /// The requested name.
        wanted: String,
        /// Names of the devices that were found.
        there: String,
    },
    /// No device supports iWARP.
    #[error("this host has no iWARP device; its RDMA devices are {there}; to use one of them, add --device NAME")]
    NoIwarp {
        /// Names of the devices that were found.
        there: String,
    },
    /// Opening the device failed.
    #[error("{what}: {why}")]
    Failed {
        /// Function or step that failed.
        what: &'static str,
        /// The library's error.
        why: io::Error,
    },
}

impl Nic {
    /// Loads the libraries and opens a device.
    pub fn open(opened: OpenOptions) -> Result<Self, OpenError> {
        let lib = Functions::loaded()?;
        let mut count = 0;
        // SAFETY: the library writes only the count. The list is freed when the device is dropped.
        let devices = unsafe { (lib.rdma_get_devices)(&raw mut count) };
        let (Some(devices), Ok(count @ 1..)) = (NonNull::new(devices), usize::try_from(count)) else {
            return Err(OpenError::None);
        };
        // SAFETY: the list has this number of entries.
        let all: Vec<*mut Context> = (0..count).map(|index| unsafe { *devices.as_ptr().add(index) }).collect();
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|why| OpenError::Failed { what: "eventfd", why: why.into() })?;
        let mut nic = Nic {
            lib,
            devices,
            context: ptr::null_mut(),
            channel: ptr::null_mut(),
            completions: ptr::null_mut(),
            objects: BTreeMap::new(),
            early: Vec::new(),
            last: 0,
            used: 0,
            limits: opened.limits,
            tester: None,
            wake,
        };
        // SAFETY: the function takes no arguments.
        nic.channel = unsafe { (nic.lib.rdma_create_event_channel)() };
        if nic.channel.is_null() {
            return Err(OpenError::Failed { what: "rdma_create_event_channel", why: io::Error::last_os_error() });
        }
        nic.context = nic.choose(&all, opened.device)?;
        // SAFETY: the device is open.
        nic.completions = unsafe { (nic.lib.ibv_create_comp_channel)(nic.context) };
        if nic.completions.is_null() {
            return Err(OpenError::Failed { what: "ibv_create_comp_channel", why: io::Error::last_os_error() });
        }
        for fd in nic.descriptors() {
            rustix::io::ioctl_fionbio(fd, true)
                .map_err(|why| OpenError::Failed { what: "cannot make a descriptor non-blocking", why: why.into() })?;
        }
        let woken = nic.wake.try_clone().map_err(|why| OpenError::Failed { what: "eventfd", why })?;
        nic.tester = Some(router().join(nic.context.addr(), woken));
        Ok(nic)
    }

    fn choose(&mut self, all: &[*mut Context], wanted: Option<String>) -> Result<*mut Context, OpenError> {
        let there = || all.iter().map(|context| device_name(*context)).collect::<Vec<_>>().join(", ");
        // SAFETY: each device is open.
        let is_iwarp = |context: *mut Context| unsafe { (*(*context).device).transport_type == TRANSPORT_IWARP };
        let Some(wanted) = wanted else {
            let found = all.iter().find(|context| is_iwarp(**context));
            return found.copied().ok_or_else(|| OpenError::NoIwarp { there: there() });
        };
        if let Some(found) = all.iter().find(|context| device_name(**context) == wanted) {
            return Ok(*found);
        }
        let by_address = wanted.parse().ok().and_then(|address: Address| self.find_device_by_address(&address));
        by_address.ok_or_else(|| OpenError::Other { wanted, there: there() })
    }

    pub(super) fn query_device(&self) -> Result<Device, Failure> {
        let mut attributes = core::mem::MaybeUninit::<DeviceAttr>::zeroed();
        // SAFETY: the device is open, and there is room for everything that the function returns.
        check("ibv_query_device", unsafe { (self.lib.ibv_query_device)(self.context, attributes.as_mut_ptr()) })?;
        // SAFETY: zero is a valid value of each member, and the library has overwritten some of
        // them.
        let attributes = unsafe { attributes.assume_init() };
        let name = device_name(self.context);
        let count = |value: c_int| u32::try_from(value).unwrap_or(0);
        let has = |bit: u32| attributes.device_cap_flags & 1 << bit != 0;
        let capabilities = [
            ("window_type_1", 17),
            ("window_type_2a", 23),
            ("window_type_2b", 24),
            ("memory_management_extensions", 21),
        ];
        let ports = (1..=attributes.phys_port_cnt).map(|port| {
            let mut attributes = PortAttr { state: 0, rest: [0; 15] };
            // SAFETY: the device is open, and there is room for more than the library writes.
            let result = unsafe { (self.lib.ibv_query_port)(self.context, port, &raw mut attributes) };
            check("ibv_query_port", result).map(|()| names::port(attributes.state))
        });
        let driver = std::fs::read_link(format!("/sys/class/infiniband/{name}/device/driver")).ok();
        let firmware: Vec<u8> =
            attributes.fw_ver.iter().map(|c| c.cast_unsigned()).take_while(|octet| *octet != 0).collect();
        Ok(Device {
            driver: driver.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned())),
            firmware: String::from_utf8_lossy(&firmware).into_owned(),
            kernel: kernel(),
            vendor: attributes.vendor_id,
            part: attributes.vendor_part_id,
            ports: ports.collect::<Result<_, _>>()?,
            max_region: attributes.max_mr_size,
            max_queue_pairs: count(attributes.max_qp),
            max_work_requests: count(attributes.max_qp_wr),
            max_parts: count(attributes.max_sge),
            max_read_parts: count(attributes.max_sge_rd),
            max_ird: count(attributes.max_qp_rd_atom),
            max_ord: count(attributes.max_qp_init_rd_atom),
            max_shared: count(attributes.max_srq),
            max_windows: count(attributes.max_mw),
            // IBV_ATOMIC_NONE is 0.
            atomics: attributes.atomic_cap != 0,
            capabilities: capabilities
                .iter()
                .filter(|(_, bit)| has(*bit))
                .map(|(name, _)| (*name).to_owned())
                .collect(),
            name,
        })
    }
}

pub(super) fn device_name(context: *mut Context) -> String {
    if context.is_null() {
        return "none".to_owned();
    }
    // SAFETY: the device is open, and its name ends with a zero.
    let name = unsafe { CStr::from_ptr((&raw const (*(*context).device).name).cast()) };
    name.to_string_lossy().into_owned()
}
