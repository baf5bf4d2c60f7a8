//! Reads the option tables of the methods of a port mapper to which the target sends requests.

use std::net::{IpAddr, SocketAddr};

use super::fields::Fields;
use super::options::Reader;
use super::port_mapper::place_from;
use super::sdp_options::{mapper_fields, message_type};
use crate::stage::{DatagramFields, Expectation, SendOptions};

impl Reader<'_> {
    /// Reads the number of a service that the target requests. 0 is the service of the good
    /// exchanges.
    pub(super) fn port_mapper_service(&self, fields: &mut Fields<'_>) -> mlua::Result<u32> {
        fields.or("service", 1)
    }

    /// `other`: whether to use another IP address of the tester, if the tester has several.
    /// `refuses`: whether the tester refuses connections to the address.
    pub(super) fn port_mapper_place(&self, fields: &mut Fields<'_>) -> mlua::Result<(bool, bool)> {
        Ok((fields.or("other", false)?, fields.or("refuses", false)?))
    }

    pub(super) fn port_mapper_send(&self, fields: &mut Fields<'_>) -> mlua::Result<SendOptions> {
        Ok(SendOptions { other_port: fields.or("aside", false)?, deviates: fields.or("deviates", false)? })
    }

    pub(super) fn port_mapper_expect(&self, fields: &mut Fields<'_>) -> mlua::Result<(Expectation, DatagramFields)> {
        let expectation = self.answer(fields)?;
        let wanted = DatagramFields {
            message: mapper_fields(fields)?,
            other_port: fields.or("aside", false)?,
            no_connection: fields.or("no_connection", false)?,
            past: message_type(fields, "past")?,
        };
        Ok((expectation, wanted))
    }

    /// Reads how long the tester waits for the next repetition, and after how many repetitions the
    /// tester stops.
    pub(super) fn port_mapper_repeats(&self, fields: &mut Fields<'_>) -> mlua::Result<(Expectation, usize)> {
        let expectation = self.answer(fields)?;
        Ok((expectation, fields.or("most", 1000)?))
    }

    /// `ip`: an address as text, or as the field of a message. `port`: a port.
    pub(super) fn expect_from(
        &self,
        fields: &mut Fields<'_>,
    ) -> mlua::Result<(Expectation, Option<IpAddr>, Option<u16>)> {
        let expectation = self.expectation(fields, 0.0)?;
        let ip = fields.optional::<String>("ip")?;
        let ip = ip.map(|ip| field(&ip).ok_or_else(|| fields.wrong("ip", &format!("{ip:?} is not an address"))));
        let ip = ip.transpose()?;
        let port = fields.optional("port")?;
        Ok((expectation, ip, port))
    }

    /// `at`: a place.
    pub(super) fn port_mapper_connection(&self, fields: &mut Fields<'_>) -> mlua::Result<(Expectation, SocketAddr)> {
        let expectation = self.answer(fields)?;
        let place = place_from(&fields.required("at")?)?;
        Ok((expectation, place))
    }
}

/// Parses an address, or the hexadecimal bytes of a field. Bytes after an IPv4 address are ignored.
fn field(text: &str) -> Option<IpAddr> {
    let octets = || Some(IpAddr::from(u32::from_str_radix(text.get(..8)?, 16).ok()?.to_be_bytes()));
    text.parse().ok().or_else(|| octets().filter(|_| text.len() == 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_after_an_ipv4_address_are_ignored() {
        for text in ["192.0.2.2", "c0000202000000000000000000000002"] {
            assert_eq!(field(text), Some(IpAddr::from([192, 0, 2, 2])), "{text}");
        }
        assert_eq!(field("2001:db8::2").map(|ip| ip.is_ipv6()), Some(true));
        assert_eq!(field("c0000202"), None);
    }
}
