//! A measured subject: one RDMA operation on its own connection. To measure both directions, the
//! subject has one connection for each direction.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use weft_peer::driver::Device;
use weft_peer::driver::cm::{CmSettings, Listener};
use weft_peer::driver::device::{BusyPoll, DeviceSettings};
use weft_peer::workload::bench::{Carrier, Plan, Sink, Source, connect_sink, connect_source, serve};

use super::Arguments;
use crate::{rnic, runtime};

/// A connected subject.
pub(super) struct MeasuredOperation {
    carrier: Carrier,
    /// The side that sends to the peer.
    forth: Arc<Source>,
    /// The side that receives from the peer. `None` without `--both-ways`.
    back: Option<Sink>,
}

impl MeasuredOperation {
    pub(super) async fn connect(
        device: &Device,
        address: SocketAddr,
        arguments: &Arguments,
        carrier: Carrier,
        size: u32,
    ) -> anyhow::Result<Self> {
        let plan = Plan { carrier, size, depth: arguments.depth, latency: arguments.latency, reverse: false };
        let settings = arguments.mpa.settings();
        let (forth, _) = connect_source(device, address, settings, plan).await.map_err(rnic::start_error(address))?;
        let back = if arguments.both_ways {
            Some(connect_sink(device, address, settings, plan).await.map_err(rnic::start_error(address))?.0)
        } else {
            None
        };
        Ok(MeasuredOperation { carrier, forth: Arc::new(forth), back })
    }

    pub(super) fn name(&self) -> &'static str {
        self.carrier.name()
    }

    /// Transfers `count` messages in each measured direction, and returns the time of the transfer.
    pub(super) async fn sample(&self, count: u64) -> anyhow::Result<Duration> {
        let Some(back) = &self.back else {
            let forth = Arc::clone(&self.forth);
            // Use a task, as the peer does. A task is faster than the future of `block_on`: before
            // the runtime resumes this future, it polls the network with a system call.
            return tokio::spawn(async move {
                let begin = Instant::now();
                forth.run(count).await.map(|()| begin.elapsed())
            })
            .await?
            .map_err(rnic::workload_error);
        };
        let begin = Instant::now();
        tokio::try_join!(self.forth.run(count), back.request(count)).map_err(rnic::workload_error)?;
        Ok(begin.elapsed())
    }

    pub(super) async fn disconnect(self) -> anyhow::Result<()> {
        self.forth.disconnect().await.map_err(rnic::workload_error)?;
        if let Some(back) = self.back {
            back.disconnect().await.map_err(rnic::workload_error)?;
        }
        Ok(())
    }
}

/// Starts a second RNIC in its own thread, and returns its address. The thread runs until the
/// process ends.
pub(super) fn here(settings: CmSettings, busy_poll: BusyPoll) -> anyhow::Result<SocketAddr> {
    let (sender, address) = mpsc::channel();
    thread::spawn(move || {
        runtime::on_one_thread::<()>(async {
            let device = rnic::open_with(DeviceSettings { busy_poll, ..DeviceSettings::default() })?;
            let listener = Listener::bind(&device, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), settings)?;
            sender.send(listener.local_addr())?;
            loop {
                let request = listener.next().await?;
                let device = device.clone();
                // Ignore errors here, because the measuring side reports them.
                tokio::spawn(async move { serve(&device, request).await });
            }
        })
    });
    Ok(address.recv()?)
}
