//! The agent's end of a connection, `pair`: what its user posts and is told.

use mlua::{IntoLuaMulti, LuaSerdeExt, Table, UserData, UserDataMethods};
use weft_agent::protocol::{Action, Done, Object, Octets, Operation};

use super::agent::{TargetVerbs, stopped};
use super::agent_options::WorkFields;
use super::agent_told::event_table;
use super::location::here;
use super::options::Reader;
use crate::model::SourceLocation;
use crate::stage::{PairOptions, parameters};

/// `pair`: the agent's end of a connection.
#[derive(Clone)]
pub(super) struct Pair {
    pub(super) agent: TargetVerbs,
    pub(super) object: Object,
}

impl Pair {
    /// A work request of the Send Queue: the number, what it gave, and why it was refused.
    async fn send(
        self,
        operation: Operation,
        work: WorkFields,
        at: Option<SourceLocation>,
    ) -> mlua::Result<(Option<u64>, Done, Option<String>)> {
        let (connection, parts) = (self.object, work.parts.clone());
        let (signaled, fence, inline) = (work.signaled, work.fence, work.inline);
        let action = |work| Action::PostSend { connection, work, operation, parts, signaled, fence, inline };
        self.agent.post(&work, at.as_ref(), action).await
    }

    /// Something that makes the target do something, and has to be done.
    async fn must(self, action: Action, at: Option<SourceLocation>) -> mlua::Result<()> {
        let mut stage = self.agent.stage.lock().await;
        match stopped(stage.agent_stimulus(action, at.as_ref()).await)? {
            Ok(_) => Ok(()),
            Err(failure) => {
                Err(mlua::Error::external(stage.agent_gone(&format!("does not do it: {failure}"), at.as_ref())))
            }
        }
    }
}

impl UserData for Pair {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_async_method("open", |lua, pair, table: Option<Table>| {
            let (at, pair) = (here(&lua), pair.clone());
            let read = pair.agent.reader(&lua).agent_pair(table, "agent_pair");
            async move {
                let (_, options) = read?;
                stopped(pair.agent.stage.lock().await.agent_pair(pair.object, &options, at.as_ref()).await)
            }
        });
        for name in ["accept", "reject"] {
            methods.add_async_method(name, move |lua, pair, table: Option<Table>| {
                let (at, pair) = (here(&lua), pair.clone());
                let read = pair.agent.reader(&lua).agent_pair(table, "agent_pair");
                async move {
                    let (_, options): (_, PairOptions) = read?;
                    let action = match name {
                        "accept" => Action::Accept(parameters(pair.object, &options)),
                        _ => Action::Reject { connection: pair.object, private_data: Octets(options.private_data) },
                    };
                    pair.must(action, at).await
                }
            });
        }
        for name in ["disconnect", "destroy"] {
            methods.add_async_method(name, move |lua, pair, ()| {
                let (at, pair) = (here(&lua), pair.clone());
                let action = match name {
                    "disconnect" => Action::Disconnect { connection: pair.object },
                    _ => Action::Destroy { object: pair.object },
                };
                pair.must(action, at)
            });
        }
        methods.add_async_method("post_receive", |lua, pair, table: Option<Table>| {
            let (at, agent, on) = (here(&lua), pair.agent.clone(), pair.object);
            let read = agent.reader(&lua).agent_work(table, "post_receive", |_| Ok(()));
            async move { agent.post_receive(on, read?.0, at.as_ref()).await }
        });
        methods.add_async_method("post_send", |lua, pair, table: Option<Table>| {
            let (at, pair) = (here(&lua), pair.clone());
            let read = pair.agent.reader(&lua).agent_work(table, "post_send", Reader::agent_send);
            async move {
                let (work, (solicited, invalidate)) = read?;
                let (number, _, why) = pair.send(Operation::Send { solicited, invalidate }, work, at).await?;
                Ok((number, why))
            }
        });
        for name in ["post_write", "post_read"] {
            methods.add_async_method(name, move |lua, pair, table: Option<Table>| {
                let (at, pair) = (here(&lua), pair.clone());
                let read = pair.agent.reader(&lua).agent_work(table, name, Reader::agent_remote);
                async move {
                    let (work, (key, address)) = read?;
                    let operation = match name {
                        "post_write" => Operation::Write { address, key },
                        _ => Operation::Read { address, key },
                    };
                    let (number, _, why) = pair.send(operation, work, at).await?;
                    Ok((number, why))
                }
            });
        }
        methods.add_async_method("post_atomic", |lua, pair, table: Option<Table>| {
            let (at, pair) = (here(&lua), pair.clone());
            let read = pair.agent.reader(&lua).agent_work(table, "post_atomic", Reader::agent_atomic);
            async move {
                let (work, operation) = read?;
                let (number, _, why) = pair.send(operation, work, at).await?;
                Ok((number, why))
            }
        });
        methods.add_async_method("post_invalidate", |lua, pair, table: Option<Table>| {
            let (at, pair) = (here(&lua), pair.clone());
            let read = pair.agent.reader(&lua).agent_work(table, "post_invalidate", |fields| fields.required("stag"));
            async move {
                let (work, key) = read?;
                let (number, _, why) = pair.send(Operation::Invalidate { key }, work, at).await?;
                Ok((number, why))
            }
        });
        methods.add_async_method("post_bind", |lua, pair, table: Option<Table>| {
            let (at, pair) = (here(&lua), pair.clone());
            let read = pair.agent.reader(&lua).agent_work(table, "post_bind", Reader::agent_bind);
            async move {
                let (work, (window, region, offset, length, access)) = read?;
                let operation =
                    Operation::Bind { window: window.object, region: region.object, offset, length, access };
                match pair.send(operation, work, at).await? {
                    (number, Done::Bound { remote_key }, _) => (number, remote_key).into_lua_multi(&lua),
                    (number, _, why) => (number, why).into_lua_multi(&lua),
                }
            }
        });
        methods.add_async_method("expect_completion", |lua, pair, table: Option<Table>| {
            let pair = pair.clone();
            let read = pair.agent.reader(&lua).expect_completion(table);
            async move {
                let (expectation, wanted) = read?;
                let mut stage = pair.agent.stage.lock().await;
                let it = stopped(stage.expect_completion(pair.object, &expectation, &wanted).await)?;
                lua.to_value(&it)
            }
        });
        methods.add_async_method("expect_event", |lua, pair, table: Option<Table>| {
            let pair = pair.clone();
            let read = pair.agent.reader(&lua).expect_event(table);
            async move {
                let (expectation, wanted) = read?;
                let mut stage = pair.agent.stage.lock().await;
                let event = stopped(stage.expect_event(pair.object, &expectation, &wanted).await)?;
                event_table(&lua, &event)
            }
        });
        methods.add_async_method("expect_error", |lua, pair, table: Option<Table>| {
            let pair = pair.clone();
            let read = pair.agent.reader(&lua).expect_error(table);
            async move {
                let (expectation, or_end) = read?;
                stopped(pair.agent.stage.lock().await.expect_error(pair.object, &expectation, or_end).await)
            }
        });
        methods.add_async_method("expect_no_completion", |lua, pair, table: Option<Table>| {
            let pair = pair.clone();
            let read = pair.agent.reader(&lua).expect_no_completion(table);
            async move { stopped(pair.agent.stage.lock().await.expect_no_completion(pair.object, &read?).await) }
        });
    }
}
