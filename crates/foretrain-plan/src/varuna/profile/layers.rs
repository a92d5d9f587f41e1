//! Tables of layer times, one row per layer, micro-batch size, model and GPU.
//!
//! Each layer becomes a cut-point. Such tables hold no messages and no all-reduces: those come from a
//! profile beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foretrain_core::{Bytes, InputError, Nanos, Result};

use super::{Costs, CutPoint, MOST_CUT_POINTS, Profile};
use crate::varuna::table::{Row, Table};

/// Which rows of a table of layers to take. What is left open must be the same in all rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayerChoice {
    /// The model.
    pub model: Option<String>,
    /// The kind of GPU.
    pub gpu: Option<String>,
    /// GPUs per layer.
    pub tensor_parallel: Option<u32>,
    /// What a layer hands on per sample, where the table does not say.
    pub activation: Option<Bytes>,
}

/// Reads the text of such a table.
///
/// # Errors
/// If a column is missing, a cell cannot be read, rows of several models, GPUs or degrees of tensor
/// parallelism are left after the choice, or layers stand there twice or not at all.
pub fn parse_layers(text: &str, choice: &LayerChoice) -> Result<Profile> {
    let mut table = Table::new(text)?;
    let columns = Columns::of(&table)?;
    let mut rows = Vec::new();
    for row in table.rows() {
        let row = row?;
        let layer = columns.layer(&row).map_err(|error| error.at(format!("line {}", row.line)))?;
        if layer.is_chosen(choice) {
            rows.push(layer);
        }
    }
    if rows.is_empty() {
        return Err(InputError::new("no row of the table is of that model, GPU and tp")
            .hint("check --model, --gpu and --tp against the table"));
    }
    let one_of = |what: &str, flag: &str, of: &dyn Fn(&Layer) -> String| {
        let all: BTreeSet<String> = rows.iter().map(of).collect();
        if all.len() > 1 {
            let all: Vec<String> = all.into_iter().collect();
            let message = format!("rows of several {what}: {}", all.join(", "));
            return Err(InputError::new(message).hint(format!("choose one by {flag}")));
        }
        Ok(())
    };
    one_of("models", "--model", &|layer| layer.model.clone())?;
    one_of("kinds of GPU", "--gpu", &|layer| layer.gpu.clone())?;
    one_of("degrees of tensor parallelism", "--tp", &|layer| layer.tensor_parallel.to_string())?;
    let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    let (model, gpu) = (named(&rows[0].model), named(&rows[0].gpu));
    let tensor_parallel = rows[0].tensor_parallel;
    Ok(Profile {
        model,
        gpu,
        tensor_parallel,
        cut_points: cut_points(rows, choice)?,
        ..Profile::default()
    })
}

fn cut_points(rows: Vec<Layer>, choice: &LayerChoice) -> Result<Vec<Arc<CutPoint>>> {
    let mut all: BTreeMap<u32, CutPoint> = BTreeMap::new();
    for row in rows {
        let cut = all.entry(row.index).or_insert_with(|| CutPoint {
            name: format!("layer {}", row.index),
            ..CutPoint::default()
        });
        let size = f64::from(row.micro_batch);
        let mut costs = row.costs;
        costs.activation = costs
            .activation
            .or_else(|| choice.activation.map(|bytes| Bytes::from_f64(bytes.as_f64() * size)));
        // It does not depend on the micro-batch; where rows differ it is the longest.
        cut.update = cut.update.max(row.update);
        if cut.costs.insert(row.micro_batch, costs).is_some() {
            return Err(InputError::new(format!(
                "layer {} with micro-batch {} stands there twice",
                row.index, row.micro_batch
            ))
            .at(format!("line {}", row.line)));
        }
    }
    let count = all.len();
    if count > MOST_CUT_POINTS {
        return Err(InputError::new(format!("more than {MOST_CUT_POINTS} layers")));
    }
    let first = all.keys().next().copied().unwrap_or_default();
    let mut expected = first..;
    if let Some((found, wanted)) =
        all.keys().copied().zip(&mut expected).find(|(found, wanted)| found != wanted)
    {
        let message = format!("no layer {wanted}, but layer {found}");
        return Err(InputError::new(message).hint("give every layer of the model"));
    }
    Ok(all.into_values().map(Arc::new).collect())
}

struct Layer {
    model: String,
    gpu: String,
    tensor_parallel: u32,
    micro_batch: u32,
    index: u32,
    costs: Costs,
    update: Option<Nanos>,
    line: u64,
}

impl Layer {
    fn is_chosen(&self, choice: &LayerChoice) -> bool {
        let same = |wanted: &Option<String>, found: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(found))
        };
        same(&choice.model, &self.model)
            && same(&choice.gpu, &self.gpu)
            && choice.tensor_parallel.is_none_or(|wanted| wanted == self.tensor_parallel)
    }
}

/// A column and the nanoseconds of one of its units.
#[derive(Clone, Copy)]
struct Time {
    column: usize,
    nanos: f64,
}

struct Columns {
    model: Option<usize>,
    gpu: Option<usize>,
    tensor_parallel: Option<usize>,
    micro_batch: usize,
    index: usize,
    forward: Time,
    backward: Time,
    update: Option<Time>,
    activation: Option<usize>,
    max_memory: Option<usize>,
}

impl Columns {
    fn of(table: &Table<'_>) -> Result<Self> {
        let time = |stems: &[&str]| -> Result<Option<Time>> {
            for (unit, nanos) in [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)] {
                let names: Vec<String> = stems.iter().map(|stem| format!("{stem}{unit}")).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                if let Some(column) = table.column(&names)? {
                    return Ok(Some(Time { column, nanos }));
                }
            }
            Ok(None)
        };
        let needed = |what: &str, stems: &[&str]| {
            time(stems)?.ok_or_else(|| {
                InputError::new(format!("no column for the {what} time"))
                    .at("line 1")
                    .hint(format!("call it {}_s, _ms, _us or _ns", stems[0]))
            })
        };
        Ok(Self {
            model: table.column(&["model"])?,
            gpu: table.column(&["gpu", "gputype", "device"])?,
            tensor_parallel: table.column(&["tp", "tensorparallel"])?,
            micro_batch: table.needed("the micro-batch", &["microbatch", "mbs", "batch"])?,
            index: table.needed("the layer", &["layerindex", "layer", "cutpoint"])?,
            forward: needed("forward", &["fwd", "forward"])?,
            backward: needed("backward", &["bwd", "backward"])?,
            update: time(&["optimizerupdate", "optimizer", "update"])?,
            activation: table.column(&["activationbytes", "activation"])?,
            max_memory: table.column(&["maxmemorybytes", "maxmemory"])?,
        })
    }

    fn layer(&self, row: &Row) -> Result<Layer> {
        let text = |column: Option<usize>| {
            column.and_then(|column| row.cell(column)).unwrap_or_default().to_owned()
        };
        let bytes = |column: Option<usize>| -> Result<Option<Bytes>> {
            column.and_then(|column| row.cell(column)).map(str::parse).transpose()
        };
        let tensor_parallel = match self.tensor_parallel {
            Some(column) => count(row, column, "tp")?,
            None => 1,
        };
        Ok(Layer {
            model: text(self.model),
            gpu: text(self.gpu),
            tensor_parallel,
            micro_batch: count(row, self.micro_batch, "micro-batch")?,
            index: row
                .cell(self.index)
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| InputError::new("expected the number of a layer, from 0"))?,
            costs: Costs {
                forward: time(row, self.forward)?,
                backward: time(row, self.backward)?,
                activation: bytes(self.activation)?,
                max_memory: bytes(self.max_memory)?,
                ..Costs::default()
            },
            update: self.update.map(|column| time(row, column)).transpose()?,
            line: row.line,
        })
    }
}

fn count(row: &Row, column: usize, what: &str) -> Result<u32> {
    let text = row.cell(column).unwrap_or_default();
    text.parse()
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| InputError::new(format!("expected a {what} of 1 or more, found {text:?}")))
}

fn time(row: &Row, column: Time) -> Result<Nanos> {
    const DAY: f64 = 86_400e9;
    let text = row.cell(column.column).unwrap_or_default();
    let nanos = text.parse::<f64>().ok().map(|value| value * column.nanos);
    let plausible = nanos.filter(|nanos| (0.0..=DAY).contains(nanos));
    plausible.map(Nanos::from_nanos_f64).ok_or_else(|| {
        InputError::new(format!("expected a time of 0 or more and at most a day, found {text:?}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "model,GPU,Micro Batch,tp,layer_index,fwd_s,bwd_ms,optimizer_update_s\n\
        a,x,1,1,0,0.010,20,0.001\na,x,1,1,1,0.011,21,0.002\n\
        a,x,2,1,0,0.018,38,0.001\na,x,2,1,1,0.019,39,0.002\n\
        a,y,1,1,0,0.5,1,0.1\na,x,1,2,0,0.006,12,0.0005\n";

    fn choice(gpu: &str, tensor_parallel: u32) -> LayerChoice {
        let activation = Some(Bytes::new(100));
        let tensor_parallel = Some(tensor_parallel);
        LayerChoice { gpu: Some(gpu.into()), tensor_parallel, activation, ..LayerChoice::default() }
    }

    #[test]
    fn rows_become_cut_points() {
        let profile = parse_layers(TABLE, &choice("X", 1)).unwrap();
        assert_eq!(profile.micro_batches(), [1, 2]);
        let cut = &profile.cut_points[1];
        let costs = cut.costs[&2];
        assert_eq!((costs.forward.millis_f64(), costs.backward.millis_f64()), (19.0, 39.0));
        assert_eq!(costs.activation, Some(Bytes::new(200)));
        assert_eq!(cut.update, Some(Nanos::from_millis(2)));
    }

    #[test]
    fn what_is_left_open_or_missing_is_said() {
        let said = |text: &str, choice: &LayerChoice| {
            let error = parse_layers(text, choice).unwrap_err();
            format!("{error} {}", error.hints().join(" "))
        };
        let all = LayerChoice::default();
        assert!(said(TABLE, &all).contains("--gpu"));
        let gpu = LayerChoice { gpu: Some("x".into()), ..all.clone() };
        assert!(said(TABLE, &gpu).contains("--tp"));
        assert!(said(TABLE, &choice("z", 1)).contains("no row"));
        assert!(said("a,b\n1,2\n", &all).contains("micro-batch"));
        let heads = "layer,mbs,fwd_s,bwd_s\n";
        assert!(said(&format!("{heads}0,1,1,1\n2,1,1,1\n"), &all).contains("no layer 1"));
        assert!(said(&format!("{heads}0,1,1,1\n0,1,1,1\n"), &all).contains("twice (at line 3)"));
        for row in ["0,0,1,1", "x,1,1,1", "0,1,-1,1", "0,1,NaN,1", "0,1,1,1e99", "0,1,1"] {
            assert!(said(&format!("{heads}{row}\n"), &all).contains("line 2"), "{row}");
        }
    }
}
