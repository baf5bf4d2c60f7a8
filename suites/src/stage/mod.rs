//! The tester's state while one case runs: its connections to the target, and the log of the case.
//!
//! Scripts act through a [`Stage`]. It owns the [`Connections`], and the state of each side. A side
//! is the tester's part of a protocol:
//!
//! | side | what the tester does |
//! | --- | --- |
//! | [`RdmaSide`] | MPA, DDP and RDMAP on a connection |
//! | [`SdpSide`] | SDP on a connection |
//! | [`MapperServerSide`] | sends requests to a target that is a port mapper |
//! | [`MapperClientSide`] | answers a target that is a client of a port mapper |
//! | [`AgentSide`] | controls the target's verbs through its agent |
//!
//! A [`Recorder`] adds to the log. If an expectation is not met, the recorder decides the case and
//! returns [`Stop`], which no script can catch. `crate::run` computes the verdict from the
//! complete log.

mod agent;
mod connections;
mod control;
mod deviation;
mod expectation;
mod good_exchange;
mod memory_share;
mod message;
mod open;
mod port_mapper;
mod rdma;
mod recorder;
mod sdp;
pub(crate) mod service;
mod stop;

use std::collections::BTreeMap;
use std::sync::Arc;

use weft_core::{RequirementId, requirement};
use weft_peer::driver::DatagramSocket;

pub(crate) use agent::{AgentSide, CompletionFields, EventFields, PairOptions, event_name, parameters};
use connections::Arrival;
pub(crate) use connections::{Connections, EndedProgram};
pub(crate) use deviation::Deviation;
pub(crate) use expectation::Expectation;
pub(crate) use memory_share::MemoryShare;
pub(crate) use message::Message;
pub(crate) use port_mapper::client::{DatagramFields, MapperClientSide, RepetitionEnd, SendOptions};
pub(crate) use port_mapper::server::{MapperFields, MapperServerSide};
use rdma::NoFrame;
pub(crate) use rdma::{
    AllowedBeforeClose, Close, ExpectedOctets, FpduFields, HeaderFields, NextEvent, Operation, RdmaSide, ReplyFields,
    TerminateFields, crc_is_right, ulpdu,
};
pub(crate) use recorder::{DIED, Log, Recorder};
#[cfg(test)]
pub(crate) use recorder::{Decision, MetExpectation};
use recorder::{Transcript, describe};
pub(crate) use sdp::{
    Cut, Ending, Item, MessageFields, SdpConnection, SdpSide, SdpSocket, SendFields, SocketSettings, SocketWait, Value,
    hello,
};
pub(crate) use stop::{Attempt, StepFailure, Stop};

use crate::evidence::OverflowMonitor;
use crate::model::{Capability, CaseKey, EventSink};
use crate::targets::{CaseLink, Target};

/// Requirements of RFC 6581 that bind only enhanced Responders. A Responder without the enhanced
/// set-up closes the connection on an enhanced Request (P2P-10-4). If a Reply is wrong, it does not
/// show whether the Responder has the enhanced set-up. So these requirements count only if the
/// target declares revision 2.
const OF_ENHANCED_RESPONDERS: [RequirementId; 3] =
    [requirement!("P2P-5-2"), requirement!("P2P-10-2"), requirement!("P2P-10-9")];

/// The tester of one case.
pub(crate) struct Stage {
    pub(crate) connections: Connections,
    /// The connections that speak SDP, by number.
    sdp: BTreeMap<u32, SdpConnection>,
    /// SDP sockets of the tester, by the number of their connection.
    sdp_sockets: BTreeMap<u32, SdpSocket>,
    /// Sockets for datagrams to a target that is a port mapper.
    sockets: Vec<DatagramSocket>,
    /// State for a target that is a client of a port mapper.
    mapper_client: port_mapper::client::State,
    agent: agent::State,
    /// If this is the stage of a control: the lengths of the ULPDUs that the control sends in place
    /// of the step that deviates.
    control: Option<Vec<u16>>,
    /// Reads the events that the traffic log drops.
    pub(crate) overflow: OverflowMonitor,
}

impl Stage {
    pub(crate) fn new(
        target: Arc<Target>,
        CaseLink { link, start, agent }: CaseLink,
        key: CaseKey,
        sink: Arc<dyn EventSink>,
    ) -> Self {
        let limits = target.options.limits;
        let mut log = Log::default();
        log.steps = Transcript::with_limit(limits.steps);
        link.traffic().set_room(limits.traffic);
        let overflow = OverflowMonitor::of(link.traffic());
        if !target.capabilities().contains(&Capability::Revision2) {
            log.exempt.extend(OF_ENHANCED_RESPONDERS);
        }
        Stage {
            connections: Connections::new(target, link, start, key, sink, log),
            sdp: BTreeMap::new(),
            sdp_sockets: BTreeMap::new(),
            sockets: Vec::new(),
            mapper_client: port_mapper::client::State::default(),
            agent: agent::State::new(agent),
            control: None,
            overflow,
        }
    }

    /// Returns the log of the case.
    pub(crate) fn log(&self) -> &Log {
        &self.connections.log
    }

    pub(crate) fn log_mut(&mut self) -> &mut Log {
        &mut self.connections.log
    }

    /// Returns the recorder, which adds to the log of the case.
    pub(crate) fn recorder(&mut self) -> Recorder<'_> {
        self.connections.recorder()
    }

    /// Returns the operations for MPA, DDP and RDMAP on a connection.
    pub(crate) fn rdma(&mut self, number: u32) -> RdmaSide<'_> {
        self.connections.rdma(number)
    }

    /// Returns the operations for SDP on a connection.
    pub(crate) fn sdp(&mut self, number: u32) -> SdpSide<'_> {
        SdpSide { connections: &mut self.connections, list: &mut self.sdp, number }
    }

    /// Returns the operations of a client, for a target that is a port mapper.
    pub(crate) fn mapper_server(&mut self) -> MapperServerSide<'_> {
        MapperServerSide { connections: &mut self.connections, sockets: &mut self.sockets }
    }

    /// Returns the operations of a port mapper, for a target that is a client.
    pub(crate) fn mapper_client(&mut self) -> MapperClientSide<'_> {
        MapperClientSide { connections: &mut self.connections, state: &mut self.mapper_client }
    }

    /// Returns the operations with the agent of the target.
    pub(crate) fn agent(&mut self) -> AgentSide<'_> {
        AgentSide { connections: &mut self.connections, state: &mut self.agent }
    }

    /// Opens a TCP connection to a responder, or starts an initiator and waits for its connection.
    /// Returns the number of the connection. The first is 1.
    pub(crate) async fn connect(&mut self) -> Result<u32, Stop> {
        if self.connections.target.service() == crate::targets::Service::Agent {
            return self.agent().open_connection().await;
        }
        self.connections.open().await
    }

    /// Returns the programs that were started as the target and have ended by themselves.
    pub(crate) async fn ended_programs(&mut self) -> Vec<EndedProgram> {
        self.connections.programs.ended(&self.connections.log).await
    }

    /// Returns whether the last program that was started as the target has ended.
    pub(crate) fn has_target_ended(&mut self) -> bool {
        self.connections.programs.last_end().is_some()
    }

    /// Closes everything that the case left open, so that the evidence is complete and the target
    /// is free.
    pub(crate) async fn leave(&mut self) {
        self.connections.at = None;
        self.agent().leave().await;
        self.connections.leave().await;
    }
}
