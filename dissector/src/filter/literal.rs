//! Reads values in filters. The field to which a value is compared determines the format of the
//! value.

use std::net::IpAddr;

use super::ast::{Literal, LiteralKind};
use super::error::FilterError;
use crate::calendar::parse_calendar_time;
use weft_core::spelling::distance;

use super::known::{Kind, KnownField};

/// The numeric values among which [`named`] searches for a name.
const NAMED_VALUES: std::ops::RangeInclusive<u64> = 0..=255;

/// The values of the field `known` that have the name `word`. Does not distinguish upper and lower
/// case.
pub(super) fn named(word: &str, known: &KnownField) -> Vec<u64> {
    let Some(names) = known.names else { return Vec::new() };
    NAMED_VALUES.filter(|value| names(*value).is_some_and(|name| name.eq_ignore_ascii_case(word))).collect()
}

/// The number of a literal. Returns several numbers if several values have the same name.
pub(super) fn numbers(text: &str, literal: &Literal<'_>, known: &KnownField) -> Result<Vec<u64>, FilterError> {
    let word = match &literal.kind {
        LiteralKind::Word(word) => {
            if let Some(number) = number(word) {
                return Ok(vec![number]);
            }
            (*word).to_owned()
        }
        LiteralKind::Str(octets) => String::from_utf8_lossy(octets).into_owned(),
    };
    let values = named(&word, known);
    if !values.is_empty() {
        return Ok(values);
    }
    match word.to_ascii_lowercase().as_str() {
        "true" | "yes" => return Ok(vec![1]),
        "false" | "no" => return Ok(vec![0]),
        _ => {}
    }
    let mut message = if word.starts_with(|c: char| c.is_ascii_digit()) {
        format!("{word} is not a number below 2^64")
    } else if word.starts_with('-') {
        format!("{} is never negative", known.name)
    } else {
        format!("{} is a number, not {word:?}", known.name)
    };
    if let Some(names) = known.names {
        let word = word.to_lowercase();
        // Prefer names that start with the word. If the word is the start of a long name, the
        // edit distance to a different, short name can be smaller.
        let near = NAMED_VALUES.filter_map(names).map(|name| (name, name.to_lowercase()));
        let near = near.min_by_key(|(_, name)| (!name.starts_with(&word), distance(&word, name)));
        if let Some((near, _)) = near {
            message.push_str(&format!("; the nearest name of a value is {near:?}"));
        }
    }
    Err(FilterError::new(text, &literal.span, message))
}

fn number(word: &str) -> Option<u64> {
    if let Some(digits) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        return u64::from_str_radix(digits, 16).ok();
    }
    word.bytes().all(|b| b.is_ascii_digit()).then(|| word.parse().ok())?
}

/// Reads seconds with up to nine decimals. Returns nanoseconds.
pub(super) fn time(text: &str, literal: &Literal<'_>) -> Result<u64, FilterError> {
    let fault = || FilterError::new(text, &literal.span, "expected seconds here, such as 1.5");
    let LiteralKind::Word(word) = literal.kind else { return Err(fault()) };
    let (seconds, fraction) = word.split_once('.').unwrap_or((word, ""));
    if fraction.len() > 9 || !(seconds.bytes().chain(fraction.bytes())).all(|b| b.is_ascii_digit()) {
        return Err(fault());
    }
    let seconds: u64 = seconds.parse().map_err(|_| fault())?;
    let fraction: u64 = format!("{fraction:0<9}").parse().map_err(|_| fault())?;
    seconds.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(fraction)).ok_or_else(fault)
}

/// Reads a date with the time of day in UTC. Returns nanoseconds since 1970.
pub(super) fn date(text: &str, literal: &Literal<'_>) -> Result<u64, FilterError> {
    let word = match &literal.kind {
        LiteralKind::Word(word) => (*word).to_owned(),
        LiteralKind::Str(octets) => String::from_utf8_lossy(octets).into_owned(),
    };
    let expected = "expected a date and a time in UTC here, such as \"2026-01-31 12:34:56.5\"";
    parse_calendar_time(&word).ok_or_else(|| FilterError::new(text, &literal.span, expected))
}

/// Reads octets. The literal is a string or a word. If the field has text values, a word is the
/// text itself. Otherwise, a word has the format `aa:bb:cc`, `aa-bb-cc`, `aabbcc` or `0xaabbcc`.
pub(super) fn octets(text: &str, literal: &Literal<'_>, known: &KnownField) -> Result<Vec<u8>, FilterError> {
    let word = match &literal.kind {
        LiteralKind::Str(octets) => return Ok(octets.clone()),
        LiteralKind::Word(word) if known.kind == Kind::Text => return Ok(word.as_bytes().to_vec()),
        LiteralKind::Word(word) => word,
    };
    let digits = word.strip_prefix("0x").unwrap_or(word);
    let octets = match digits.find([':', '-', '.']) {
        Some(_) => digits.split([':', '-', '.']).map(octet).collect::<Option<Vec<u8>>>(),
        None if digits.len().is_multiple_of(2) && digits.is_ascii() => {
            (0..digits.len()).step_by(2).map(|at| digits.get(at..at + 2).and_then(octet)).collect()
        }
        None => None,
    };
    octets.filter(|octets| !octets.is_empty()).ok_or_else(|| {
        let message =
            format!("the value of {} is bytes; write it as 0a:1b:2c or as a string in quotation marks", known.name);
        FilterError::new(text, &literal.span, message)
    })
}

/// If a field has a fixed set of text values, and the literal is not in this set, returns an error.
pub(super) fn among_words(
    text: &str,
    literal: &Literal<'_>,
    known: &KnownField,
    octets: &[u8],
) -> Result<(), FilterError> {
    if known.words.is_empty() || known.words.iter().any(|word| word.as_bytes() == octets) {
        return Ok(());
    }
    let message = format!(
        "{} is never {:?}; it is one of {}",
        known.name,
        String::from_utf8_lossy(octets),
        known.words.join(", ")
    );
    Err(FilterError::new(text, &literal.span, message))
}

fn octet(digits: &str) -> Option<u8> {
    let digits_only = digits.bytes().all(|b| b.is_ascii_hexdigit());
    (digits_only && matches!(digits.len(), 1 | 2)).then(|| u8::from_str_radix(digits, 16).ok())?
}

/// Reads an address, or a network such as `10.0.0.0/8`. Returns the address and the prefix length.
pub(super) fn network(text: &str, literal: &Literal<'_>, kind: Kind) -> Result<(IpAddr, u8), FilterError> {
    let fault = |what: &str| FilterError::new(text, &literal.span, format!("expected {what} here"));
    let what = match kind {
        Kind::Ipv4 => "an IPv4 address or network such as 10.0.0.0/8",
        Kind::Ipv6 => "an IPv6 address or network such as fd00::/8",
        _ => "an address",
    };
    let word = match &literal.kind {
        LiteralKind::Word(word) => (*word).to_owned(),
        LiteralKind::Str(octets) => String::from_utf8_lossy(octets).into_owned(),
    };
    let (address, prefix) = word.split_once('/').map_or((word.as_str(), None), |(a, p)| (a, Some(p)));
    let address: IpAddr = address.parse().map_err(|_| fault(what))?;
    if (kind == Kind::Ipv4 && !address.is_ipv4()) || (kind == Kind::Ipv6 && !address.is_ipv6()) {
        return Err(fault(what));
    }
    let most = if address.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix {
        None => most,
        Some(prefix) => prefix.parse().ok().filter(|prefix| *prefix <= most).ok_or_else(|| fault(what))?,
    };
    Ok((address, prefix))
}

/// Returns whether `address` belongs to the network.
pub(super) fn within(address: &IpAddr, network: &IpAddr, prefix: u8) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let differing = address.to_bits() ^ network.to_bits();
            differing.checked_shr(32 - u32::from(prefix.min(32))).unwrap_or(0) == 0
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let differing = address.to_bits() ^ network.to_bits();
            differing.checked_shr(128 - u32::from(prefix.min(128))).unwrap_or(0) == 0
        }
        _ => false,
    }
}
