//! The tables that the methods of a port mapper take which a target asks.

use std::net::{IpAddr, SocketAddr};

use mlua::Table;

use super::asked::place_from;
use super::fields::Fields;
use super::options::{REPLY_SECONDS, Reader, SILENCE_SECONDS};
use super::sdp_options::{mapper_fields, message_type};
use crate::stage::{AskedFields, Expectation, SendOptions};

impl Reader<'_> {
    /// The number of a service that a target asks for; 0 is that of the good exchanges.
    pub(super) fn asked_service(&self, table: Option<Table>) -> mlua::Result<u32> {
        let mut fields = Fields::new(self.lua, "asked_service", table);
        let service = fields.or("service", 1)?;
        fields.done()?;
        Ok(service)
    }

    /// `other`: another address of the tester's, where it has one; `refuses`: nobody listens.
    pub(super) fn asked_place(&self, table: Option<Table>) -> mlua::Result<(bool, bool)> {
        let mut fields = Fields::new(self.lua, "asked_place", table);
        let place = (fields.or("other", false)?, fields.or("refuses", false)?);
        fields.done()?;
        Ok(place)
    }

    pub(super) fn asked_send(&self, table: Option<Table>) -> mlua::Result<SendOptions> {
        let mut fields = Fields::new(self.lua, "asked_send", table);
        let options = SendOptions { aside: fields.or("aside", false)?, deviates: fields.or("deviates", false)? };
        fields.done()?;
        Ok(options)
    }

    pub(super) fn asked_expect(&self, table: Option<Table>) -> mlua::Result<(Expectation, AskedFields)> {
        let mut fields = Fields::new(self.lua, "asked_expect", table);
        let expectation = self.expectation(&mut fields, REPLY_SECONDS)?;
        let wanted = AskedFields {
            message: mapper_fields(&mut fields)?,
            aside: fields.or("aside", false)?,
            no_connection: fields.or("no_connection", false)?,
            past: message_type(&mut fields, "past")?,
        };
        fields.done()?;
        Ok((expectation, wanted))
    }

    pub(super) fn asked_quiet(&self, table: Option<Table>, what: &'static str) -> mlua::Result<Expectation> {
        let mut fields = Fields::new(self.lua, what, table);
        let expectation = self.expectation(&mut fields, SILENCE_SECONDS)?;
        fields.done()?;
        Ok(expectation)
    }

    /// How long nothing has to come, and how many are enough.
    pub(super) fn asked_repeats(&self, table: Option<Table>) -> mlua::Result<(Expectation, usize)> {
        let mut fields = Fields::new(self.lua, "asked_repeats", table);
        let expectation = self.expectation(&mut fields, REPLY_SECONDS)?;
        let most = fields.or("most", 1000)?;
        fields.done()?;
        Ok((expectation, most))
    }

    /// `ip`: in text, or as a message has it; `port`.
    pub(super) fn asked_from(&self, table: Option<Table>) -> mlua::Result<(Expectation, Option<IpAddr>, Option<u16>)> {
        let mut fields = Fields::new(self.lua, "expect_from", table);
        let expectation = self.expectation(&mut fields, 0.0)?;
        let ip = fields.optional::<String>("ip")?;
        let ip = ip.map(|ip| field(&ip).ok_or_else(|| fields.wrong("ip", &format!("{ip:?} is no address"))));
        let ip = ip.transpose()?;
        let port = fields.optional("port")?;
        fields.done()?;
        Ok((expectation, ip, port))
    }

    /// `at`: a place.
    pub(super) fn asked_connection(&self, table: Option<Table>) -> mlua::Result<(Expectation, SocketAddr)> {
        let mut fields = Fields::new(self.lua, "asked_connection", table);
        let expectation = self.expectation(&mut fields, REPLY_SECONDS)?;
        let place = place_from(&fields.required("at")?)?;
        fields.done()?;
        Ok((expectation, place))
    }
}

/// An address in text, or the hexadecimal octets of a field with something behind its IPv4 address.
fn field(text: &str) -> Option<IpAddr> {
    let octets = || Some(IpAddr::from(u32::from_str_radix(text.get(..8)?, 16).ok()?.to_be_bytes()));
    text.parse().ok().or_else(|| octets().filter(|_| text.len() == 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_behind_an_address_does_not_count() {
        for text in ["192.0.2.2", "c0000202000000000000000000000002"] {
            assert_eq!(field(text), Some(IpAddr::from([192, 0, 2, 2])), "{text}");
        }
        assert_eq!(field("2001:db8::2").map(|ip| ip.is_ipv6()), Some(true));
        assert_eq!(field("c0000202"), None);
    }
}
