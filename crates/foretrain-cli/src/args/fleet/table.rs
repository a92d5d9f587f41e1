//! How tables are given.

use std::path::PathBuf;

use clap::Args;
use foretrain::fleet::jobs::{ColumnHint, Schema, TableOptions};

use crate::args::values;
use crate::commands::fleet::Source;

#[derive(Debug, Args)]
pub(super) struct Tables {
    /// Tables: CSV, JSON, JSON lines (also .gz or .zst), Parquet.
    #[arg(value_name = "TABLE", required = true)]
    tables: Vec<PathBuf>,
    #[command(flatten)]
    said: Said,
}

/// What the user says of tables.
#[derive(Debug, Args)]
pub(super) struct Said {
    /// What kind of table it is, where the titles do not tell: features, alibaba-2020-job, philly,
    /// helios, acme, plain, ... [default: by the titles].
    #[arg(long, value_name = "NAME", value_parser = schema)]
    schema: Option<&'static Schema>,
    /// What a column holds, as in submit=queued_at:ms; may be given several times.
    #[arg(long = "column", value_name = "FIELD=COLUMN[:UNIT]", value_parser = values::hinted::<ColumnHint>)]
    columns: Vec<ColumnHint>,
}

fn schema(name: &str) -> Result<&'static Schema, String> {
    Schema::named(name).map_err(values::advised)
}

impl From<Said> for TableOptions {
    fn from(args: Said) -> Self {
        Self { schema: args.schema, columns: args.columns }
    }
}

impl From<Tables> for Source {
    fn from(args: Tables) -> Self {
        Self { files: args.tables, said: args.said.into() }
    }
}
