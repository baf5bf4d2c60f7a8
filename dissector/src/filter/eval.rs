//! Compiles a filter (looks up names and reads values), and evaluates it for units and frames.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use memchr::memmem::Finder;
use regex::bytes::{Regex, RegexBuilder};

use super::ast::{Expr, Item, Literal, LiteralKind, Relation, Test, TestOperation};
use super::collect::WantedFields;
use super::error::FilterError;
use super::known::{self, Kind, KnownField};
use super::literal;
use super::values::{FieldValue, Slot, Values};

/// Maximum number of regular expressions in a filter. Users can combine several expressions into
/// one expression with `|`.
const MAX_REGEXES: usize = 16;
/// Maximum size in bytes of a compiled regular expression. The same limit applies to its state
/// cache. This limit and [`MAX_REGEXES`] bound the memory and the compile time of a filter.
const LARGEST_REGEX: usize = 256 << 10;

#[derive(Debug, Clone)]
pub(super) enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Test(Slot, Check),
}

#[derive(Debug, Clone)]
pub(super) enum Check {
    Present,
    /// At least one occurrence matches.
    Any(Predicate),
    /// The field occurs, and all occurrences match.
    Every(Predicate),
    /// A comparison with the occurrences of another field.
    ToField(Relation, Slot),
}

/// A test of one value.
#[derive(Debug, Clone)]
pub(super) enum Predicate {
    /// Numbers, and times in nanoseconds.
    Number(Relation, u64),
    Octets(Relation, Vec<u8>),
    Network(IpAddr, u8),
    /// The number or time is in one of the ranges. The next two variants test addresses and octets
    /// in the same way.
    Numbers(Vec<RangeInclusive<u64>>),
    Addresses(Vec<RangeInclusive<IpAddr>>),
    OctetStrings(Vec<RangeInclusive<Vec<u8>>>),
    Contains(Box<Finder<'static>>),
    Matches(Box<Regex>),
    Not(Box<Predicate>),
    Either(Vec<Predicate>),
}

impl Node {
    pub(super) fn holds(&self, values: &Values) -> bool {
        match self {
            Node::All(parts) => parts.iter().all(|part| part.holds(values)),
            Node::Any(parts) => parts.iter().any(|part| part.holds(values)),
            Node::Not(inner) => !inner.holds(values),
            Node::Test(slot, check) => match check {
                Check::Present => values.of(*slot).next().is_some(),
                Check::Any(predicate) => values.of(*slot).any(|value| predicate.holds(value, values)),
                Check::Every(predicate) => {
                    let mut all = values.of(*slot).map(|value| predicate.holds(value, values));
                    all.next().is_some_and(|first| first && all.all(|holds| holds))
                }
                Check::ToField(relation, other) => fields_relate(*relation, values, *slot, *other),
            },
        }
    }
}

impl Predicate {
    fn holds(&self, value: &FieldValue, values: &Values) -> bool {
        match (self, value) {
            (Predicate::Not(inner), _) => !inner.holds(value, values),
            (Predicate::Either(inner), _) => inner.iter().any(|one| one.holds(value, values)),
            (Predicate::Number(relation, wanted), FieldValue::Number(value) | FieldValue::Time(value)) => {
                relate(*relation, value, wanted)
            }
            (Predicate::Number(relation, wanted), FieldValue::Difference(value)) => {
                relate(*relation, &i128::from(*value), &i128::from(*wanted))
            }
            (Predicate::Octets(relation, wanted), _) => {
                octets_of(value, values).is_some_and(|value| relate(*relation, value, wanted.as_slice()))
            }
            (Predicate::Network(network, prefix), FieldValue::Address(address)) => {
                literal::within(address, network, *prefix)
            }
            (Predicate::Numbers(ranges), FieldValue::Number(value) | FieldValue::Time(value)) => {
                ranges.iter().any(|range| range.contains(value))
            }
            (Predicate::Numbers(ranges), FieldValue::Difference(value)) => {
                u64::try_from(*value).is_ok_and(|value| ranges.iter().any(|range| range.contains(&value)))
            }
            (Predicate::Addresses(ranges), FieldValue::Address(value)) => {
                ranges.iter().any(|range| range.contains(value))
            }
            (Predicate::OctetStrings(ranges), _) => octets_of(value, values).is_some_and(|value| {
                ranges.iter().any(|r| r.start().as_slice() <= value && value <= r.end().as_slice())
            }),
            (Predicate::Contains(finder), _) => octets_of(value, values).is_some_and(|o| finder.find(o).is_some()),
            (Predicate::Matches(regex), _) => octets_of(value, values).is_some_and(|octets| regex.is_match(octets)),
            _ => false,
        }
    }
}

fn octets_of<'v>(value: &'v FieldValue, values: &'v Values) -> Option<&'v [u8]> {
    match value {
        FieldValue::Octets(range) => Some(values.octets(range)),
        FieldValue::StaticText(word) => Some(word.as_bytes()),
        _ => None,
    }
}

fn relate<T: PartialOrd + ?Sized>(relation: Relation, value: &T, wanted: &T) -> bool {
    match relation {
        Relation::Equal | Relation::AllEqual => value == wanted,
        Relation::NotEqual | Relation::AnyNotEqual => value != wanted,
        Relation::Greater => value > wanted,
        Relation::Less => value < wanted,
        Relation::GreaterOrEqual => value >= wanted,
        Relation::LessOrEqual => value <= wanted,
    }
}

fn fields_relate(relation: Relation, values: &Values, slot: Slot, other: Slot) -> bool {
    let pair = |a: &FieldValue, b: &FieldValue| match (a, b) {
        (FieldValue::Address(a), FieldValue::Address(b)) => relate(relation, a, b),
        _ => match (a.number(), b.number(), octets_of(a, values), octets_of(b, values)) {
            (Some(a), Some(b), ..) => relate(relation, &a, &b),
            (.., Some(a), Some(b)) => relate(relation, a, b),
            _ => false,
        },
    };
    let there = values.of(slot).next().is_some() && values.of(other).next().is_some();
    there
        && match relation {
            Relation::NotEqual | Relation::AllEqual => values.of(slot).all(|a| values.of(other).all(|b| pair(a, b))),
            _ => values.of(slot).any(|a| values.of(other).any(|b| pair(a, b))),
        }
}

fn not_searchable(known: &KnownField, operator: &str) -> String {
    format!("{} is neither bytes nor text, so the operator `{operator}` cannot search it", known.name)
}

/// Looks names up and reads values.
pub(super) struct Compiler<'t, 'w> {
    pub text: &'t str,
    pub wanted: &'w mut WantedFields,
    /// Number of regular expressions so far.
    pub regexes: usize,
}

impl Compiler<'_, '_> {
    pub(super) fn compile(&mut self, expr: &Expr<'_>) -> Result<Node, FilterError> {
        Ok(match expr {
            Expr::All(parts) => Node::All(self.list(parts)?),
            Expr::Any(parts) => Node::Any(self.list(parts)?),
            Expr::Not(inner) => Node::Not(Box::new(self.compile(inner)?)),
            Expr::Test(test) => {
                let known = self.known(test)?;
                let check = self.check(test, known)?;
                Node::Test(self.wanted.add(known), check)
            }
        })
    }

    fn list(&mut self, parts: &[Expr<'_>]) -> Result<Vec<Node>, FilterError> {
        parts.iter().map(|part| self.compile(part)).collect()
    }

    fn known(&self, test: &Test<'_>) -> Result<&'static KnownField, FilterError> {
        known::known(test.name).ok_or_else(|| {
            let hint = match known::nearest(test.name) {
                Some(near) => format!("did you mean {near}?"),
                None => "`weft dissect -G fields` lists all fields and protocols".to_owned(),
            };
            FilterError::new(self.text, &test.span, format!("{} is not a field or protocol; {hint}", test.name))
        })
    }

    fn check(&mut self, test: &Test<'_>, known: &'static KnownField) -> Result<Check, FilterError> {
        let fault = |message: String| Err(FilterError::new(self.text, &test.span, message));
        if known.kind == Kind::Presence && test.operation != TestOperation::Present {
            return fault(format!("{} has no value to compare; write it without an operator", known.name));
        }
        let is_searchable = matches!(known.kind, Kind::Octets | Kind::Text);
        Ok(match &test.operation {
            TestOperation::Present => Check::Present,
            TestOperation::Compare(relation, literal) => match self.field_named(literal, known) {
                Some(other) => self.compare_fields(*relation, literal, known, other)?,
                None => self.compare(*relation, literal, known)?,
            },
            TestOperation::In(items) => Check::Any(self.set(items, known)?),
            TestOperation::NotIn(items) => Check::Every(Predicate::Not(Box::new(self.set(items, known)?))),
            TestOperation::Contains(_) if !is_searchable => return fault(not_searchable(known, "contains")),
            TestOperation::Matches(_) if !is_searchable => return fault(not_searchable(known, "matches")),
            TestOperation::Contains(literal) => {
                let octets = literal::octets(self.text, literal, known)?;
                Check::Any(Predicate::Contains(Box::new(Finder::new(&octets).into_owned())))
            }
            TestOperation::Matches(literal) => Check::Any(Predicate::Matches(Box::new(self.regex(literal)?))),
        })
    }

    /// If the literal is the name of a field, returns this field; the filter then compares two
    /// fields. Returns `None` if the literal is in quotation marks, if the literal is the name of a
    /// value of `known`, or if `known` is a text field.
    fn field_named(&self, literal: &Literal<'_>, known: &KnownField) -> Option<&'static KnownField> {
        let LiteralKind::Word(word) = literal.kind else { return None };
        let other = known::known(word).filter(|other| other.kind != Kind::Presence)?;
        (literal::named(word, known).is_empty() && known.kind != Kind::Text).then_some(other)
    }

    fn compare_fields(
        &mut self,
        relation: Relation,
        literal: &Literal<'_>,
        known: &KnownField,
        other: &'static KnownField,
    ) -> Result<Check, FilterError> {
        if known.kind != other.kind {
            let message = format!("{} and {} have different types, so they cannot be compared", known.name, other.name);
            return Err(FilterError::new(self.text, &literal.span, message));
        }
        Ok(Check::ToField(relation, self.wanted.add(other)))
    }

    fn compare(&self, relation: Relation, literal: &Literal<'_>, known: &KnownField) -> Result<Check, FilterError> {
        let ordered =
            matches!(relation, Relation::Greater | Relation::Less | Relation::GreaterOrEqual | Relation::LessOrEqual);
        let order = if ordered { relation } else { Relation::Equal };
        let predicate = match known.kind {
            Kind::Number => {
                let numbers = literal::numbers(self.text, literal, known)?;
                match numbers.as_slice() {
                    [number] => Predicate::Number(order, *number),
                    _ if ordered => {
                        let message = format!("several values of {} have this name; write a number", known.name);
                        return Err(FilterError::new(self.text, &literal.span, message));
                    }
                    _ => Predicate::Numbers(numbers.into_iter().map(|number| number..=number).collect()),
                }
            }
            Kind::Time => Predicate::Number(order, literal::time(self.text, literal)?),
            Kind::Date => Predicate::Number(order, literal::date(self.text, literal)?),
            Kind::Octets | Kind::Text => {
                let octets = literal::octets(self.text, literal, known)?;
                literal::among_words(self.text, literal, known, &octets)?;
                Predicate::Octets(order, octets)
            }
            Kind::Ipv4 | Kind::Ipv6 | Kind::Address => {
                if ordered {
                    let message = "addresses have no order; use == with an address or a network such as 10.0.0.0/8";
                    return Err(FilterError::new(self.text, &literal.span, message));
                }
                let (network, prefix) = literal::network(self.text, literal, known.kind)?;
                Predicate::Network(network, prefix)
            }
            // `check` has already rejected comparisons of a field without values.
            Kind::Presence => return Ok(Check::Present),
        };
        Ok(match relation {
            Relation::NotEqual => Check::Every(Predicate::Not(Box::new(predicate))),
            Relation::AnyNotEqual => Check::Any(Predicate::Not(Box::new(predicate))),
            Relation::AllEqual => Check::Every(predicate),
            _ => Check::Any(predicate),
        })
    }

    fn set(&self, items: &[Item<'_>], known: &KnownField) -> Result<Predicate, FilterError> {
        let each = items.iter().map(|item| self.item(item, known)).collect::<Result<Vec<_>, _>>()?;
        Ok(Predicate::Either(each))
    }

    fn item(&self, item: &Item<'_>, known: &KnownField) -> Result<Predicate, FilterError> {
        let (low, high) = match item {
            Item::One(literal) => {
                return Ok(match self.compare(Relation::Equal, literal, known)? {
                    Check::Any(predicate) => predicate,
                    _ => Predicate::Either(Vec::new()),
                });
            }
            Item::Range(low, high) => (low, high),
        };
        let text = self.text;
        let empty = || {
            let span = low.span.start..high.span.end;
            FilterError::new(text, &span, "this range is empty, because its start is greater than its end")
        };
        Ok(match known.kind {
            Kind::Number => {
                let (a, b) = (literal::numbers(text, low, known)?, literal::numbers(text, high, known)?);
                let (Some(a), Some(b)) = (a.first().copied(), b.last().copied()) else { return Err(empty()) };
                Predicate::Numbers(vec![range(a, b).ok_or_else(empty)?])
            }
            Kind::Time => {
                let (a, b) = (literal::time(text, low)?, literal::time(text, high)?);
                Predicate::Numbers(vec![range(a, b).ok_or_else(empty)?])
            }
            Kind::Date => {
                let (a, b) = (literal::date(text, low)?, literal::date(text, high)?);
                Predicate::Numbers(vec![range(a, b).ok_or_else(empty)?])
            }
            Kind::Octets | Kind::Text | Kind::Presence => {
                let (a, b) = (literal::octets(text, low, known)?, literal::octets(text, high, known)?);
                Predicate::OctetStrings(vec![range(a, b).ok_or_else(empty)?])
            }
            Kind::Ipv4 | Kind::Ipv6 | Kind::Address => {
                let a = literal::network(text, low, known.kind)?.0;
                let b = literal::network(text, high, known.kind)?.0;
                Predicate::Addresses(vec![range(a, b).ok_or_else(empty)?])
            }
        })
    }

    fn regex(&mut self, literal: &Literal<'_>) -> Result<Regex, FilterError> {
        let LiteralKind::Str(pattern) = &literal.kind else {
            let message = "write a regular expression in quotation marks";
            return Err(FilterError::new(self.text, &literal.span, message));
        };
        self.regexes += 1;
        if self.regexes > MAX_REGEXES {
            let message = format!("a filter has at most {MAX_REGEXES} regular expressions; join them with |");
            return Err(FilterError::new(self.text, &literal.span, message));
        }
        // As in Wireshark, regular expressions do not distinguish upper and lower case.
        let pattern = String::from_utf8_lossy(pattern);
        RegexBuilder::new(&pattern)
            .case_insensitive(true)
            .unicode(false)
            .size_limit(LARGEST_REGEX)
            .dfa_size_limit(LARGEST_REGEX)
            .build()
            .map_err(|error| {
                let why = error.to_string();
                let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                FilterError::new(self.text, &literal.span, format!("invalid regular expression: {why}"))
            })
    }
}

fn range<T: PartialOrd>(low: T, high: T) -> Option<RangeInclusive<T>> {
    (low <= high).then_some(low..=high)
}
