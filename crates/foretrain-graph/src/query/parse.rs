//! Reading queries from text.

use foretrain_core::suggest::nearest;
use foretrain_core::{DType, InputError, Result};

use super::{Compare, Field, Query, Value};
use crate::glob::Glob;
use crate::kinds::{CollectiveKind, NodeKind, Phase};

/// Deeper nesting than any person writes; bounds the recursion on hostile input.
const MAX_DEPTH: usize = 64;
const COMPARISONS: [(&str, Compare); 8] = [
    ("==", Compare::Eq),
    ("!=", Compare::Ne),
    ("<=", Compare::Le),
    (">=", Compare::Ge),
    ("=", Compare::Eq),
    ("<", Compare::Lt),
    (">", Compare::Gt),
    ("~", Compare::Like),
];
const FIELDS: [&str; 10] =
    ["kind", "phase", "collective", "dtype", "name", "module", "queue", "group", "role", "attr"];

impl Query {
    /// Reads a query from its text form (see [`Query`]).
    ///
    /// # Errors
    /// If the text is not a query; the error names the character, what was expected there, and
    /// the nearest valid word.
    pub fn parse(text: &str) -> Result<Self> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let query = parser.any_of()?;
        parser.skip_space();
        if parser.at < text.len() {
            return Err(parser.expected("`&`, `|` or the end of the query"));
        }
        Ok(query)
    }
}

impl std::str::FromStr for Query {
    type Err = InputError;
    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

/// A word or a quoted string.
struct Token {
    text: String,
    quoted: bool,
    start: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, symbol: &str) -> bool {
        self.skip_space();
        let hit = self.rest().starts_with(symbol);
        if hit {
            self.at += symbol.len();
        }
        hit
    }

    /// Eats a symbol (doubled too, out of habit), or the word that stands for it.
    fn eat_operator(&mut self, symbol: &str, word: &str) -> bool {
        if self.eat(symbol) {
            self.at += if self.rest().starts_with(symbol) { symbol.len() } else { 0 };
            return true;
        }
        self.eat_word(word)
    }

    fn eat_word(&mut self, word: &str) -> bool {
        self.skip_space();
        let after = self.rest().strip_prefix(word);
        let hit = after.is_some_and(|r| r.starts_with(|c: char| c.is_whitespace() || c == '('));
        if hit {
            self.at += word.len();
        }
        hit
    }

    fn error_at(&self, byte: usize, message: String) -> InputError {
        let character = self.text[..byte].chars().count() + 1;
        InputError::new(message).at(format!("character {character} of the query"))
    }

    fn expected(&self, what: &str) -> InputError {
        let found = match self.rest().trim_start().chars().next() {
            Some(c) => format!("found `{c}`"),
            None => "the query ends".to_owned(),
        };
        self.error_at(self.at, format!("expected {what}, but {found}"))
    }

    fn unknown(&self, token: &Token, what: &str, words: &[&str]) -> InputError {
        let message = format!("expected {what}, found `{}`", token.text);
        let error = self.error_at(token.start, message);
        match nearest(&token.text, words.iter().copied()) {
            Some(word) => error.hint(format!("did you mean `{word}`?")),
            None => error.hint(format!("known: {}", words.join(", "))),
        }
    }

    fn any_of(&mut self) -> Result<Query> {
        let mut query = vec![self.all_of()?];
        while self.eat_operator("|", "or") {
            query.push(self.all_of()?);
        }
        Ok(single_or(query, Query::Or))
    }

    fn all_of(&mut self) -> Result<Query> {
        let mut query = vec![self.factor()?];
        while self.eat_operator("&", "and") {
            query.push(self.factor()?);
        }
        Ok(single_or(query, Query::And))
    }

    fn factor(&mut self) -> Result<Query> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let message = format!("the query nests deeper than {MAX_DEPTH} levels");
            return Err(self.error_at(self.at, message));
        }
        let query = if self.eat("!") || self.eat_word("not") {
            self.factor()?.not()
        } else if self.eat("(") {
            let inner = self.any_of()?;
            self.close()?;
            inner
        } else {
            self.atom()?
        };
        self.depth -= 1;
        Ok(query)
    }

    fn close(&mut self) -> Result<()> {
        if self.eat(")") { Ok(()) } else { Err(self.expected("`)`")) }
    }

    fn atom(&mut self) -> Result<Query> {
        let head = self
            .word("a node kind such as `kernel` or a condition such as `name:*gemm*`", |c| {
                c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
            })?;
        if self.rest().starts_with(':') {
            self.at += 1;
            return self.condition(&head);
        }
        if let Some(field) = Field::ALL.into_iter().find(|f| f.as_str() == head.text) {
            return self.field(field);
        }
        if head.text == "all" {
            return Ok(Query::All);
        }
        let Some(kind) = NodeKind::parse(&head.text) else {
            let words: Vec<_> =
                kind_words().chain(FIELDS).chain(["all", "work", "bytes"]).collect();
            return Err(self.unknown(&head, "a node kind or a condition", &words));
        };
        if !self.eat("(") {
            return Ok(Query::Kind(kind));
        }
        let argument = self.value("a name pattern")?;
        let inner = match kind {
            NodeKind::Collective | NodeKind::PointToPoint if !argument.quoted => {
                Query::Collective(self.operation(&argument)?)
            }
            _ => Query::Name(Glob::new(&argument.text)),
        };
        self.close()?;
        Ok(Query::Kind(kind).and(inner))
    }

    fn condition(&mut self, head: &Token) -> Result<Query> {
        let glob = |parser: &mut Self| Ok(Glob::new(&parser.value("a pattern")?.text));
        Ok(match head.text.as_str() {
            "name" => Query::Name(glob(self)?),
            "module" => Query::Module(glob(self)?),
            "queue" => Query::Queue(glob(self)?),
            "group" => Query::Group(glob(self)?),
            "role" => Query::Role(glob(self)?),
            "kind" => {
                let word = self.value("a node kind")?;
                let words: Vec<_> = kind_words().collect();
                let kind = NodeKind::parse(&word.text);
                Query::Kind(kind.ok_or_else(|| self.unknown(&word, "a node kind", &words))?)
            }
            "phase" => {
                let word = self.value("a phase")?;
                let words: Vec<_> = Phase::ALL.iter().map(|p| p.as_str()).collect();
                let phase = Phase::parse(&word.text);
                Query::Phase(phase.ok_or_else(|| self.unknown(&word, "a phase", &words))?)
            }
            "collective" => {
                let word = self.value("a collective operation")?;
                Query::Collective(self.operation(&word)?)
            }
            "dtype" => {
                let word = self.value("an element type")?;
                let dtype = DType::parse(&word.text);
                let known = ["f64", "f32", "f16", "bf16", "f8e4m3", "i64", "i32", "i8", "bool"];
                Query::DType(dtype.ok_or_else(|| self.unknown(&word, "an element type", &known))?)
            }
            "attr" => self.attribute()?,
            _ => return Err(self.unknown(head, "a condition", &FIELDS)),
        })
    }

    fn operation(&self, word: &Token) -> Result<CollectiveKind> {
        let words: Vec<_> = CollectiveKind::ALL.iter().map(|c| c.as_str()).collect();
        CollectiveKind::parse(&word.text)
            .ok_or_else(|| self.unknown(word, "a collective operation", &words))
    }

    fn attribute(&mut self) -> Result<Query> {
        let name = self.name_of_attribute()?;
        let Some(compare) = self.comparison() else { return Ok(Query::HasAttribute(name)) };
        let value = self.value("a value to compare with")?;
        if compare == Compare::Like || value.quoted {
            return Ok(Query::Attribute(name, compare, Value::Text(value.text)));
        }
        let value = match value.text.as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            text => match (text.parse::<i64>(), text.parse::<f64>()) {
                (Ok(int), _) => Value::Int(int),
                (_, Ok(float)) if float.is_finite() => Value::Float(float),
                _ => Value::Text(value.text),
            },
        };
        Ok(Query::Attribute(name, compare, value))
    }

    fn name_of_attribute(&mut self) -> Result<String> {
        if self.rest().starts_with('"') {
            return Ok(self.value("an attribute name")?.text);
        }
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
        Ok(self.word("an attribute name", is_part)?.text)
    }

    fn comparison(&mut self) -> Option<Compare> {
        COMPARISONS.into_iter().find(|(symbol, _)| self.eat(symbol)).map(|(_, compare)| compare)
    }

    fn field(&mut self, field: Field) -> Result<Query> {
        let compare = match self.comparison() {
            Some(compare) if compare != Compare::Like => compare,
            _ => return Err(self.expected("`=`, `!=`, `<`, `<=`, `>` or `>=`")),
        };
        let (what, units): (_, &[(&str, f64)]) = match field {
            Field::Work => (
                "a time such as `10us`",
                &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("", 1.0)],
            ),
            Field::Bytes => (
                "a size such as `4MiB`",
                &[
                    ("KiB", 1024.0),
                    ("MiB", 1_048_576.0),
                    ("GiB", 1_073_741_824.0),
                    ("kB", 1e3),
                    ("MB", 1e6),
                    ("GB", 1e9),
                    ("B", 1.0),
                    ("", 1.0),
                ],
            ),
            Field::Priority | Field::Sequence => ("a whole number", &[("", 1.0)]),
        };
        let word = self.value(what)?;
        let number = number_with_unit(&word.text, units).ok_or_else(|| {
            self.error_at(word.start, format!("expected {what}, found `{}`", word.text))
        })?;
        Ok(Query::Field(field, compare, number))
    }

    fn word(&mut self, what: &str, is_part: impl Fn(char) -> bool) -> Result<Token> {
        self.skip_space();
        let start = self.at;
        let length = self.rest().find(|c| !is_part(c)).unwrap_or(self.rest().len());
        if length == 0 {
            return Err(self.expected(what));
        }
        self.at += length;
        Ok(Token { text: self.text[start..self.at].to_owned(), quoted: false, start })
    }

    /// A quoted string or a bare word up to a space, an operator or a parenthesis.
    fn value(&mut self, what: &str) -> Result<Token> {
        self.skip_space();
        if !self.rest().starts_with('"') {
            return self.word(what, |c| !c.is_whitespace() && !"&|()\"!".contains(c));
        }
        let start = self.at;
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((offset, c)) = chars.next() {
            match c {
                '"' => {
                    self.at = start + offset + 1;
                    return Ok(Token { text, quoted: true, start });
                }
                // Other escapes are the glob's own business.
                '\\' => match chars.next() {
                    Some((_, next @ ('"' | '\\'))) => text.push(next),
                    Some((_, next)) => text.extend(['\\', next]),
                    None => break,
                },
                c => text.push(c),
            }
        }
        Err(self.error_at(start, "expected a closing `\"` for this quote".to_owned()))
    }
}

fn kind_words() -> impl Iterator<Item = &'static str> {
    NodeKind::ALL.iter().map(|kind| kind.as_str())
}

fn single_or(mut parts: Vec<Query>, wrap: impl FnOnce(Vec<Query>) -> Query) -> Query {
    match parts.len() {
        1 => parts.remove(0),
        _ => wrap(parts),
    }
}

/// A number and one of the units, in whole base units; `None` if it is not one or does not fit.
fn number_with_unit(text: &str, units: &[(&str, f64)]) -> Option<i64> {
    if let Ok(whole) = text.parse() {
        return Some(whole);
    }
    let (digits, factor) =
        units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))?;
    if let Ok(whole) = digits.parse::<i64>() {
        return whole.checked_mul(factor as i64);
    }
    let scaled = (digits.parse::<f64>().ok()? * factor).round();
    (scaled.is_finite() && scaled.abs() < 9e18).then_some(scaled as i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn errors_say_where_and_what() {
        for (text, message, hint) in [
            (
                "kernal",
                "expected a node kind or a condition, found `kernal` (at character 1 of the query)",
                "did you mean `kernel`?",
            ),
            (
                "kernel & phase:bakward",
                "expected a phase, found `bakward` (at character 16 of the query)",
                "did you mean `backward`?",
            ),
            (
                "collective(allreduce)",
                "expected a collective operation, found `allreduce` (at character 12 of the query)",
                "did you mean `all-reduce`?",
            ),
            (
                "modul:x",
                "expected a condition, found `modul` (at character 1 of the query)",
                "did you mean `module`?",
            ),
        ] {
            let error = Query::parse(text).unwrap_err();
            assert_eq!(error.to_string(), message);
            assert_eq!(error.hints(), [hint], "{text}");
        }
        for (text, message) in [
            (
                "",
                "expected a node kind such as `kernel` or a condition such as `name:*gemm*`, but \
                 the query ends (at character 1 of the query)",
            ),
            ("(kernel", "expected `)`, but the query ends (at character 8 of the query)"),
            (
                "kernel kernel",
                "expected `&`, `|` or the end of the query, but found `k` (at character 8 of the \
                 query)",
            ),
            ("name:\"x", "expected a closing `\"` for this quote (at character 6 of the query)"),
            (
                "work>fast",
                "expected a time such as `10us`, found `fast` (at character 6 of the query)",
            ),
            (
                "attr:tokens>",
                "expected a value to compare with, but the query ends (at character 13 of the \
                 query)",
            ),
        ] {
            assert_eq!(Query::parse(text).unwrap_err().to_string(), message, "{text}");
        }
        let deep = "(".repeat(100_000);
        assert!(Query::parse(&deep).unwrap_err().message().contains("nests deeper"));
        assert!(Query::parse(&"!".repeat(100_000)).unwrap_err().message().contains("nests deeper"));
    }

    fn query() -> impl Strategy<Value = Query> {
        let text = "[ -~\u{e9}]{0,6}";
        let compare = prop::sample::select(COMPARISONS.map(|(_, compare)| compare).to_vec());
        let value = prop_oneof![
            any::<i64>().prop_map(Value::Int),
            (-1e9..1e9).prop_map(Value::Float),
            any::<bool>().prop_map(Value::Bool),
            text.prop_map(Value::Text),
        ];
        let field = (prop::sample::select(Field::ALL.to_vec()), compare.clone(), any::<i64>());
        let leaf = prop_oneof![
            Just(Query::All),
            prop::sample::select(NodeKind::ALL).prop_map(Query::Kind),
            prop::sample::select(Phase::ALL).prop_map(Query::Phase),
            prop::sample::select(CollectiveKind::ALL).prop_map(Query::Collective),
            text.prop_map(|t| Query::name(&t)),
            text.prop_map(|t| Query::module(&t)),
            text.prop_map(Query::HasAttribute),
            field
                .prop_filter("globs are for text", |(_, c, _)| *c != Compare::Like)
                .prop_map(|(field, c, v)| Query::Field(field, c, v)),
            (text, compare, value)
                .prop_filter("globs are for text", |(_, c, v)| {
                    *c != Compare::Like || matches!(v, Value::Text(_))
                })
                .prop_map(|(name, c, v)| Query::Attribute(name, c, v)),
        ];
        leaf.prop_recursive(4, 24, 3, |inner| {
            prop_oneof![
                inner.clone().prop_map(Query::not),
                prop::collection::vec(inner.clone(), 2..4).prop_map(Query::And),
                prop::collection::vec(inner, 2..4).prop_map(Query::Or),
            ]
        })
    }

    proptest! {
        #[test]
        fn text_reads_back(query in query()) {
            prop_assert_eq!(Query::parse(&query.to_string()).unwrap(), query);
        }

        #[test]
        fn any_text_is_read_or_refused(text in r#"[a-z:()!&|"\\*<>=~. \u{e9}0-9]{0,40}"#) {
            let _ = Query::parse(&text);
        }
    }
}
