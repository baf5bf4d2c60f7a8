//! Connections between the tester and the agent's device, and the good exchange on such a
//! connection.

use std::net::SocketAddr;

use weft_agent::protocol::{
    Access, Action, Address, Event, Object, Octets, Operation as Verb, Parameters, Part, Success,
};
use weft_core::wire::ddp::Segment;
use weft_core::wire::mpa::StartupKind;

use super::{AgentSide, Attempt, Expectation, Stop};
use crate::correct;
use crate::model::{Direction, Role};
use crate::stage::rdma::{StartUpResult, unexpected};
use crate::stage::{Message, ReplyFields, ulpdu};

/// The payload of the Sends that open a connection.
const OPENING: &[u8] = b"weft opening";
/// Number of the first work request that opens a connection. The work requests of a script are
/// numbered from 1.
const OPENING_WORK: u64 = 1 << 32;

/// Settings for the agent's side of a connection. The default settings are correct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PairOptions {
    pub(crate) private_data: Vec<u8>,
    pub(crate) ird: u8,
    pub(crate) ord: u8,
    pub(crate) domain: Option<Object>,
    pub(crate) shared: Option<Object>,
    pub(crate) depth: u32,
    pub(crate) parts: u32,
    pub(crate) inline: u32,
    pub(crate) solicited: bool,
}

impl Default for PairOptions {
    fn default() -> Self {
        PairOptions {
            private_data: Vec::new(),
            ird: 1,
            ord: 1,
            domain: None,
            shared: None,
            depth: 16,
            parts: 1,
            inline: 0,
            solicited: false,
        }
    }
}

/// A connection in Full Operation: both sides may send FPDUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AgentConnection {
    /// Number of the connection at the tester.
    pub(crate) number: u32,
    /// The agent's object for the connection.
    pub(crate) pair: Object,
    /// MSN of the tester's next Send.
    pub(crate) msn: u32,
    /// MSN of the target's next Send.
    pub(crate) target_msn: u32,
    /// Whether CRCs are in use.
    crc: bool,
}

impl AgentSide<'_> {
    /// Opens a TCP connection to the address that the agent listens on.
    pub(in crate::stage) async fn open_connection(&mut self) -> Result<u32, Stop> {
        if self.connections.target.role() == Role::Initiator {
            let why = "the target is an initiator, so its agent connects; use target:connect";
            return Err(self.recorder().harness(why));
        }
        self.connections.check_limit()?;
        let there = self.listener().await?;
        let connected = match self.connections.link.is_virtual() {
            true => self.connections.link.connect().await,
            false => self.connections.link.connect_to(there, None).await,
        };
        self.connections.opened(connected)
    }

    /// Returns the address `agent_at` of the target file, if it has one.
    fn address(&self) -> Option<SocketAddr> {
        self.connections.target.remote()?.agent.as_ref()?.translated_address
    }

    async fn listener(&mut self) -> Result<SocketAddr, Stop> {
        if let Some(listener) = self.state.listener {
            return Ok(listener);
        }
        let (target, meeting) = (self.connections.link.target(), self.address());
        // An interface in `agent_at` is an interface of the agent's host. An interface in the
        // target's address is an interface of the tester's host, so the agent gets this address
        // without the interface.
        let (address, port) =
            meeting.map_or((target.ip().into(), 0), |meeting| (Address::from(meeting), meeting.port()));
        let Success::Listener { port, .. } = self.perform(Action::Listen { address, port, backlog: 16 }).await? else {
            return Err(self.wrong_answer());
        };
        let mut there = target;
        if meeting.is_none() {
            there.set_port(port);
        }
        self.state.listener = Some(there);
        Ok(there)
    }

    /// Creates the agent's end of a connection, and finds the route to the tester. The connection
    /// does not begin yet.
    async fn resolve(&mut self) -> Result<Object, Stop> {
        let target = self.connections.link.target();
        let (there, address) =
            self.address().map_or((target, target.ip().into()), |meeting| (meeting, Address::from(meeting)));
        if there.ip().is_unspecified() {
            let why = "cannot connect to an unspecified address; set `listen` in the target file to an address that the target's host reaches";
            return Err(self.fail(why));
        }
        let Success::Connection { connection } = self.perform(Action::Resolve { address, port: there.port() }).await?
        else {
            return Err(self.wrong_answer());
        };
        Ok(connection)
    }

    /// Creates the Queue Pair of the agent's end.
    pub(crate) async fn create_pair(&mut self, connection: Object, options: &PairOptions) -> Result<(), Stop> {
        let domain = self.domain_or(options.domain).await?;
        let &PairOptions { shared, depth, parts, inline, solicited, .. } = options;
        self.perform(Action::Pair { connection, domain, shared, depth, parts, inline, solicited }).await?;
        Ok(())
    }

    /// Lets the agent's end connect to the tester over TCP and send its Request. Returns the number
    /// of the connection at the tester, and the agent's end.
    pub(crate) async fn connect(
        &mut self,
        options: &PairOptions,
        expectation: &Expectation,
    ) -> Result<(u32, Object), Stop> {
        if self.connections.target.role() != Role::Initiator {
            let why = "the target is a responder, so the tester connects; use t:connect";
            return Err(self.recorder().harness(why));
        }
        self.connections.check_limit()?;
        let pair = self.resolve().await?;
        self.create_pair(pair, options).await?;
        self.perform(Action::Connect(parameters(pair, options))).await?;
        let deadline = self.connections.link.now() + expectation.within;
        match self.connections.link.accept(deadline).await {
            Ok(Some(end)) => Ok((self.connections.connected(end, Direction::Received), pair)),
            Ok(None) => {
                let actual = format!("no connection within {} s", expectation.within.as_secs_f64());
                Err(self.recorder().unreached("a TCP connection from the target", &actual))
            }
            Err(error) => Err(self.recorder().harness(&error.to_string())),
        }
    }

    /// Waits until the target's user is notified of a Request. Returns the agent's end of the
    /// requested connection, and the event.
    pub(crate) async fn expect_request(&mut self, expectation: &Expectation) -> Result<(Object, Event), Stop> {
        let deadline = self.connections.link.now() + expectation.within;
        let is_request = |event: &Event| matches!(event, Event::Request { .. });
        match self.event(deadline, is_request).await? {
            Some(event @ Event::Request { connection, .. }) => Ok((connection, event)),
            _ => {
                let expected = "the target's user is notified of the Request";
                Err(self.recorder().overdue(expectation, expected, "the target's user is not notified"))
            }
        }
    }

    /// Opens a connection in Full Operation, in either role of the target. If the tester is the
    /// Initiator, it sends `request`.
    pub(crate) async fn operate(
        &mut self,
        options: &PairOptions,
        request: &Message,
        expectation: &Expectation,
    ) -> Result<AgentConnection, Stop> {
        match self.begin(options, request, expectation).await {
            Ok(operated) => {
                self.connections.log.answered();
                let settled = self.connections.link.now() + self.connections.target.options.settle_time;
                self.connections.link.pause(settled).await;
                Ok(operated)
            }
            Err(failure) => {
                let preparation = Expectation::preparation(expectation.within);
                Err(self.recorder().failed(failure, &preparation, "a connection in Full Operation"))
            }
        }
    }

    async fn begin(
        &mut self,
        options: &PairOptions,
        request: &Message,
        expectation: &Expectation,
    ) -> Attempt<AgentConnection> {
        match self.connections.target.role() {
            Role::Initiator => self.operate_as_initiator(options, expectation).await,
            Role::Responder | Role::Both => self.operate_as_responder(options, request, expectation).await,
        }
    }

    /// Lets the agent accept a connection from the tester. The tester sends the first Send.
    async fn operate_as_responder(
        &mut self,
        options: &PairOptions,
        request: &Message,
        expectation: &Expectation,
    ) -> Attempt<AgentConnection> {
        let number = self.open_connection().await?;
        self.connections.put(number, request).await?;
        let (pair, _) = self.expect_request(&Expectation::preparation(expectation.within)).await?;
        self.create_pair(pair, options).await?;
        let on = options.shared.unwrap_or(pair);
        let part = self.opening_part(options).await?;
        self.perform(Action::PostReceive { on, work: OPENING_WORK, parts: vec![part] }).await?;
        self.perform(Action::Accept(parameters(pair, options))).await?;
        let started = self.connections.rdma(number).finish_start_up(request, expectation).await?;
        self.await_established(pair, expectation).await?;
        let msn = self.connections.exchange(number, started, expectation).first_send(OPENING).await?;
        self.await_work(pair, OPENING_WORK, expectation).await?;
        Ok(AgentConnection { number, pair, msn: msn + 1, target_msn: 1, crc: started.crc })
    }

    /// Lets the agent connect and send the first Send.
    async fn operate_as_initiator(
        &mut self,
        options: &PairOptions,
        expectation: &Expectation,
    ) -> Attempt<AgentConnection> {
        let (number, pair) = self.connect(options, expectation).await?;
        let preparation = Expectation::preparation(expectation.within);
        let wanted = ReplyFields::default();
        self.connections.rdma(number).expect_frame(&preparation, StartupKind::Request, &wanted).await?;
        let reply = Message::new("MPA Reply", correct::startup(&self.connections.rdma(number).correct_reply()?));
        let started = self.connections.rdma(number).accept(&reply, expectation).await?.started;
        self.await_established(pair, expectation).await?;
        let part = self.opening_part(options).await?;
        let msn = self.receive_opening(number, pair, part, started, expectation).await?;
        Ok(AgentConnection { number, pair, msn: 1, target_msn: msn.wrapping_add(1), crc: started.crc })
    }

    /// Lets the agent post a Send of the opening bytes. Returns the MSN of the received Send.
    async fn receive_opening(
        &mut self,
        number: u32,
        pair: Object,
        part: Part,
        started: StartUpResult,
        expectation: &Expectation,
    ) -> Attempt<u32> {
        let action = Action::PostSend {
            connection: pair,
            work: OPENING_WORK,
            operation: Verb::Send { solicited: false, invalidate: None },
            parts: vec![part],
            signaled: true,
            fence: false,
            inline: false,
        };
        self.perform(action).await?;
        let due = "its Send";
        let fpdu = self.connections.exchange(number, started, expectation).answer(due).await?;
        let msn = match Segment::parse(ulpdu(&fpdu)) {
            Ok(Segment::Untagged(header, payload)) if header.ulp_control.opcode().is_send() && payload == OPENING => {
                header.msn.get()
            }
            _ => return Err(unexpected(&fpdu, due)),
        };
        self.await_work(pair, OPENING_WORK, expectation).await?;
        Ok(msn)
    }

    /// Registers memory for an opening Send, and fills it with the bytes of the Send.
    async fn opening_part(&mut self, options: &PairOptions) -> Result<Part, Stop> {
        let domain = self.domain_or(options.domain).await?;
        let octets = OPENING.len() as u64;
        let access = vec![Access::LocalWrite];
        let Success::Region { region, .. } = self.perform(Action::Register { domain, octets, access }).await? else {
            return Err(self.wrong_answer());
        };
        self.perform(Action::Put { region, offset: 0, octets: Octets(OPENING.to_vec()) }).await?;
        Ok(Part { region, offset: 0, length: u32::try_from(octets).unwrap_or(0), key: None })
    }

    async fn await_established(&mut self, pair: Object, expectation: &Expectation) -> Attempt {
        let deadline = self.connections.link.now() + expectation.within;
        let of_pair = |event: &Event| match event {
            Event::Established { connection, .. }
            | Event::Rejected { connection, .. }
            | Event::Failed { connection, .. } => *connection == pair,
            _ => false,
        };
        match self.event(deadline, of_pair).await? {
            Some(Event::Established { .. }) => Ok(()),
            Some(other) => {
                let event = serde_json::to_string(&other).unwrap_or_default();
                Err(format!("the target's user is notified of {event}").into())
            }
            None => Err("the target's user is not notified that the connection is established".into()),
        }
    }

    async fn await_work(&mut self, pair: Object, work: u64, expectation: &Expectation) -> Attempt {
        let deadline = self.connections.link.now() + expectation.within;
        let of_work =
            |event: &Event| matches!(event, Event::Completion(it) if it.connection == pair && it.work == work);
        match self.event(deadline, of_work).await? {
            Some(Event::Completion(it)) if it.status == "success" => Ok(()),
            Some(Event::Completion(it)) => {
                Err(format!("the target's work request completes with {}", it.status).into())
            }
            _ => Err("the target's work request does not complete".into()),
        }
    }

    /// Does a Send in each direction on a new connection, then closes the connection gracefully.
    /// Returns the number of the connection.
    pub(in crate::stage) async fn exchange(&mut self, expectation: &Expectation) -> Attempt<u32> {
        let options = PairOptions::default();
        let request = Message::new("MPA Request", correct::startup(&self.connections.target.description.request));
        let AgentConnection { number, pair, msn, crc, .. } = self.begin(&options, &request, expectation).await?;
        // Then do a Send in the other direction.
        let part = self.opening_part(&options).await?;
        let started = StartUpResult { crc, rtr: None, ird: None };
        match self.connections.target.role() {
            Role::Initiator => {
                let work = OPENING_WORK + 1;
                self.perform(Action::PostReceive { on: pair, work, parts: vec![part] }).await?;
                let mut exchange = self.connections.exchange(number, started, expectation);
                exchange.send("Send", &correct::send(msn, OPENING)).await?;
                self.await_work(pair, work, expectation).await?;
            }
            Role::Responder | Role::Both => {
                self.receive_opening(number, pair, part, started, expectation).await?;
            }
        }
        self.connections.finish(number).await?;
        let deadline = self.connections.link.now() + expectation.within;
        let ended = |event: &Event| matches!(event, Event::Disconnected { connection } if *connection == pair);
        // Some devices end the connection only when they get their next request. For such a device,
        // no event arrives here, and `Action::Destroy` below ends the connection.
        self.event(deadline, ended).await?;
        self.perform(Action::Destroy { object: pair }).await?;
        Ok(number)
    }
}

/// Returns the parameters of a connection in the agent's protocol.
pub(crate) fn parameters(connection: Object, options: &PairOptions) -> Parameters {
    let &PairOptions { ref private_data, ird, ord, .. } = options;
    Parameters { connection, private_data: Octets(private_data.clone()), ird, ord }
}
