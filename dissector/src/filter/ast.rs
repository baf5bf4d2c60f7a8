//! Parses the text of a filter to a syntax tree. This module does not look up field names; `eval`
//! does that later.
//!
//! ```text
//! any   = all {("||" | "or") all}
//! all   = not {("&&" | "and") not}
//! not   = ("!" | "not") not | "(" any ")" | test
//! test  = name [relation literal | "contains" literal | "matches" string | ["not"] "in" "{" item {[","] item} "}"]
//! item  = literal | literal ".." literal
//! ```

use std::ops::Range;

use super::error::FilterError;
use super::lex::{Token, TokenKind, lex};

/// Maximum nesting depth of parentheses and negations.
const MAX_DEPTH: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expr<'t> {
    All(Vec<Expr<'t>>),
    Any(Vec<Expr<'t>>),
    Not(Box<Expr<'t>>),
    Test(Test<'t>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Test<'t> {
    pub name: &'t str,
    pub span: Range<usize>,
    pub operation: TestOperation<'t>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TestOperation<'t> {
    Present,
    Compare(Relation, Literal<'t>),
    Contains(Literal<'t>),
    Matches(Literal<'t>),
    In(Vec<Item<'t>>),
    NotIn(Vec<Item<'t>>),
}

/// An item of a set: one value, or a range that includes its start and its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item<'t> {
    One(Literal<'t>),
    Range(Literal<'t>, Literal<'t>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Literal<'t> {
    pub kind: LiteralKind<'t>,
    pub span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LiteralKind<'t> {
    Word(&'t str),
    Str(Vec<u8>),
}

/// A comparison operator. If a field occurs several times, the operator also determines how many of
/// the values must match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    /// At least one occurrence is equal.
    Equal,
    /// The field occurs, and all occurrences are equal.
    AllEqual,
    /// The field occurs, and no occurrence is equal. This is `!=` in tshark 4.
    NotEqual,
    /// At least one occurrence is not equal.
    AnyNotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
}

impl Relation {
    fn of(token: &TokenKind<'_>) -> Option<Self> {
        let (TokenKind::Word(word) | TokenKind::Sign(word)) = token else { return None };
        Some(match *word {
            "==" | "eq" | "any_eq" => Relation::Equal,
            "===" | "all_eq" => Relation::AllEqual,
            "!=" | "ne" | "all_ne" => Relation::NotEqual,
            "!==" | "~=" | "any_ne" => Relation::AnyNotEqual,
            ">" | "gt" => Relation::Greater,
            "<" | "lt" => Relation::Less,
            ">=" | "ge" => Relation::GreaterOrEqual,
            "<=" | "le" => Relation::LessOrEqual,
            _ => return None,
        })
    }
}

/// Parses the filter `text`.
pub(super) fn parse(text: &str) -> Result<Expr<'_>, FilterError> {
    let tokens = lex(text)?;
    if tokens.is_empty() {
        return Err(FilterError::new(text, &(0..0), "the filter is empty"));
    }
    let mut parser = Parser { text, tokens, at: 0, depth: 0 };
    let expr = parser.any()?;
    match parser.tokens.get(parser.at) {
        None => Ok(expr),
        Some(Token { kind: TokenKind::Sign(")"), span }) => {
            Err(FilterError::new(text, span, "this parenthesis was not opened"))
        }
        Some(Token { kind: TokenKind::Sign("&"), span }) => Err(FilterError::new(
            text,
            span,
            "the operator & is not supported; use the field of the bit, such as iwarp_mpa.crc_flag",
        )),
        Some(token) => Err(FilterError::new(text, &token.span, "expected && or || here, or the end of the filter")),
    }
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Token<'t>>,
    at: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<&TokenKind<'t>> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    fn take(&mut self, words: &[&str]) -> bool {
        let found = matches!(self.peek(), Some(TokenKind::Word(word) | TokenKind::Sign(word)) if words.contains(word));
        self.at += usize::from(found);
        found
    }

    fn next(&mut self) -> Option<Token<'t>> {
        let token = self.tokens.get(self.at).cloned();
        self.at += usize::from(token.is_some());
        token
    }

    /// An error at the next token. If there is no next token, the error is at the end of the
    /// filter.
    fn fault(&self, message: &str) -> FilterError {
        let span = self.tokens.get(self.at).map_or(self.text.len()..self.text.len(), |token| token.span.clone());
        FilterError::new(self.text, &span, message)
    }

    fn any(&mut self) -> Result<Expr<'t>, FilterError> {
        let mut alternatives = vec![self.all()?];
        while self.take(&["||", "or"]) {
            alternatives.push(self.all()?);
        }
        Ok(single(alternatives).unwrap_or_else(Expr::Any))
    }

    fn all(&mut self) -> Result<Expr<'t>, FilterError> {
        let mut parts = vec![self.not()?];
        while self.take(&["&&", "and"]) {
            parts.push(self.not()?);
        }
        Ok(single(parts).unwrap_or_else(Expr::All))
    }

    fn not(&mut self) -> Result<Expr<'t>, FilterError> {
        if self.depth == MAX_DEPTH {
            return Err(self.fault(&format!("parentheses and negations are nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let open = self.at;
        let expr = if self.take(&["!", "not"]) {
            Expr::Not(Box::new(self.not()?))
        } else if self.take(&["("]) {
            let inner = self.any()?;
            if !self.take(&[")"]) {
                return Err(match self.tokens.get(self.at) {
                    Some(_) => self.fault("expected &&, || or ) here"),
                    None => FilterError::new(self.text, &self.tokens[open].span, "this parenthesis is not closed"),
                });
            }
            inner
        } else {
            Expr::Test(self.test()?)
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn test(&mut self) -> Result<Test<'t>, FilterError> {
        let expected = "expected the name of a field or protocol here";
        let Some(TokenKind::Word(name)) = self.peek() else { return Err(self.fault(expected)) };
        let name = *name;
        if ["and", "or", "in", "contains", "matches"].contains(&name) {
            return Err(self.fault(expected));
        }
        let span = self.tokens[self.at].span.clone();
        self.at += 1;
        let operation = if let Some(relation) = self.peek().and_then(Relation::of) {
            self.at += 1;
            TestOperation::Compare(relation, self.literal()?)
        } else if self.take(&["contains"]) {
            TestOperation::Contains(self.literal()?)
        } else if self.take(&["matches", "~"]) {
            TestOperation::Matches(self.literal()?)
        } else if self.take(&["in"]) {
            TestOperation::In(self.set()?)
        } else if self.take(&["not"]) {
            if !self.take(&["in"]) {
                return Err(self.fault("expected the operator `in` after `not`, as in tcp.port not in {1, 2}"));
            }
            TestOperation::NotIn(self.set()?)
        } else {
            TestOperation::Present
        };
        Ok(Test { name, span, operation })
    }

    fn literal(&mut self) -> Result<Literal<'t>, FilterError> {
        let expected = "expected a value here";
        match self.next() {
            Some(Token { kind: TokenKind::Word(word), span }) => Ok(Literal { kind: LiteralKind::Word(word), span }),
            Some(Token { kind: TokenKind::Str(value), span }) => Ok(Literal { kind: LiteralKind::Str(value), span }),
            Some(Token { span, .. }) => Err(FilterError::new(self.text, &span, expected)),
            None => Err(self.fault(expected)),
        }
    }

    fn set(&mut self) -> Result<Vec<Item<'t>>, FilterError> {
        if !self.take(&["{"]) {
            return Err(self.fault("a set begins with {, as in {1, 2, 4..6}"));
        }
        let mut items = Vec::new();
        while !self.take(&["}"]) {
            if self.peek().is_none() {
                return Err(self.fault("this set has no closing }"));
            }
            if !items.is_empty() {
                self.take(&[","]);
            }
            let literal = self.literal()?;
            items.push(range(self.text, literal)?);
        }
        if items.is_empty() {
            self.at -= 1;
            return Err(self.fault("an empty set never matches"));
        }
        Ok(items)
    }
}

/// Splits a word that contains `..` into a range.
fn range<'t>(text: &str, literal: Literal<'t>) -> Result<Item<'t>, FilterError> {
    let LiteralKind::Word(word) = literal.kind else { return Ok(Item::One(literal)) };
    let Some((low, high)) = word.split_once("..") else { return Ok(Item::One(literal)) };
    if low.is_empty() || high.is_empty() {
        return Err(FilterError::new(text, &literal.span, "a range has a start, an end and no blanks, such as 4..6"));
    }
    let Range { start, end } = literal.span;
    Ok(Item::Range(
        Literal { kind: LiteralKind::Word(low), span: start..start + low.len() },
        Literal { kind: LiteralKind::Word(high), span: end - high.len()..end },
    ))
}

fn single<'t>(mut list: Vec<Expr<'t>>) -> Result<Expr<'t>, Vec<Expr<'t>>> {
    match list.len() {
        1 => list.pop().ok_or(list),
        _ => Err(list),
    }
}
