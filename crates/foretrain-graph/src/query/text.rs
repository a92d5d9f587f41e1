//! The text form of a query, as [`Query::parse`] reads it.

use std::fmt;

use super::{Query, Value};

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Kind(kind) => write!(f, "kind:{kind}"),
            Self::Phase(phase) => write!(f, "phase:{phase}"),
            Self::Collective(op) => write!(f, "collective:{op}"),
            Self::DType(dtype) => write!(f, "dtype:{dtype}"),
            Self::Name(glob) => write!(f, "name:{}", Quoted(glob.as_str())),
            Self::Module(glob) => write!(f, "module:{}", Quoted(glob.as_str())),
            Self::Queue(glob) => write!(f, "queue:{}", Quoted(glob.as_str())),
            Self::Group(glob) => write!(f, "group:{}", Quoted(glob.as_str())),
            Self::Role(glob) => write!(f, "role:{}", Quoted(glob.as_str())),
            Self::Field(field, compare, value) => {
                write!(f, "{}{}{value}", field.as_str(), compare.as_str())
            }
            Self::HasAttribute(name) => write!(f, "attr:{}", Quoted(name)),
            Self::Attribute(name, compare, value) => {
                write!(f, "attr:{}{}{value}", Quoted(name), compare.as_str())
            }
            Self::Not(inner) => write!(f, "!({inner})"),
            Self::And(all) if all.is_empty() => f.write_str("all"),
            Self::And(all) if let [Self::Kind(kind), Self::Name(glob)] = &all[..] => {
                write!(f, "{kind}({})", Quoted(glob.as_str()))
            }
            Self::Or(any) if any.is_empty() => f.write_str("!all"),
            Self::And(all) => join(f, all, " & "),
            Self::Or(any) => join(f, any, " | "),
        }
    }
}

fn join(f: &mut fmt::Formatter<'_>, parts: &[Query], separator: &str) -> fmt::Result {
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            f.write_str(separator)?;
        }
        match part {
            Query::And(_) | Query::Or(_) => write!(f, "({part})")?,
            _ => write!(f, "{part}")?,
        }
    }
    Ok(())
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            // `{:?}` keeps the point, so that 1.0 reads back as a float.
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Text(text) => Quoted(text).fmt(f),
        }
    }
}

struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for c in self.0.chars() {
            if matches!(c, '"' | '\\') {
                f.write_str("\\")?;
            }
            write!(f, "{c}")?;
        }
        f.write_str("\"")
    }
}
