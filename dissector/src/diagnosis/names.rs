//! Short names of the endpoints in a paragraph: their addresses without ports.
//!
//! A paragraph names each endpoint many times, and its first line has the complete addresses.

use std::net::SocketAddr;

/// Removes the ports from the addresses `ends` in `text`. Without ports, the addresses must still
/// differ. Otherwise, `text` remains unchanged.
pub(super) fn shorten(text: &str, ends: &[String; 2]) -> String {
    let [Ok(first), Ok(other)] = ends.each_ref().map(|end| end.parse::<SocketAddr>()) else { return text.to_owned() };
    if first.ip() == other.ip() {
        return text.to_owned();
    }
    let text = replace(text, &ends[0], &first.ip().to_string());
    replace(&text, &ends[1], &other.ip().to_string())
}

/// Replaces `address` by `short`, except where `address` is only a part of a longer number.
fn replace(text: &str, address: &str, short: &str) -> String {
    let is_digit = |character: char| character.is_ascii_digit();
    let mut parts = text.split(address).peekable();
    let mut replaced = String::with_capacity(text.len());
    while let Some(part) = parts.next() {
        replaced.push_str(part);
        if let Some(next) = parts.peek() {
            let is_part = part.ends_with(is_digit) || next.starts_with(is_digit);
            replaced.push_str(if is_part { address } else { short });
        }
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(text: &str, ends: [&str; 2]) -> String {
        shorten(text, &ends.map(str::to_owned))
    }

    #[test]
    fn different_addresses_lose_their_ports() {
        let text = "10.0.0.1:4000 sends to 10.0.0.2:4420; 10.0.0.1:4000 closes";
        assert_eq!(short(text, ["10.0.0.1:4000", "10.0.0.2:4420"]), "10.0.0.1 sends to 10.0.0.2; 10.0.0.1 closes");
        assert_eq!(short("[fd00::1]:80 closes", ["[fd00::1]:80", "[fd00::2]:80"]), "fd00::1 closes");
    }

    #[test]
    fn ports_distinguish_equal_addresses() {
        let text = "127.0.0.1:4000 sends to 127.0.0.1:4420";
        assert_eq!(short(text, ["127.0.0.1:4000", "127.0.0.1:4420"]), text);
    }

    #[test]
    fn longer_numbers_remain() {
        let ends = ["10.0.0.1:40", "10.0.0.2:80"];
        assert_eq!(short("10.0.0.1:4000 and 110.0.0.1:40", ends), "10.0.0.1:4000 and 110.0.0.1:40");
        assert_eq!(short("10.0.0.2:80", ends), "10.0.0.2");
    }
}
