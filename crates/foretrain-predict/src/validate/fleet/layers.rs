//! Layer tables of vision models, and what pairs of them have in common.

use std::collections::BTreeMap;

use foretrain_core::{Bytes, DType, InputError, Result};
use foretrain_fleet::sharing::{Geometry, Kind, ModelLayers, Pair, Rule, Signature, Workload};
use serde::Deserialize;

use crate::validate::ValidationSet;
use crate::validate::corpus::Corpus;
use crate::validate::report::{Row, SetOutcome, Skipped};

const LAYERS: &str = "fleet/gemel_layers.csv";
const PAIRS: &str = "fleet/gemel_shared_layers.csv";

/// The models of GEMEL's workloads, from the library.
pub(super) struct Gemel;

impl ValidationSet for Gemel {
    fn name(&self) -> &'static str {
        "layers-gemel"
    }

    fn about(&self) -> &'static str {
        "What the layers of 19 vision models take, and what each of their 190 pairs could share, from \
         the library's descriptions of the models beside tables that were read off their published \
         implementations. Nothing is fitted. Heads are of two classes, as in the tables (of the YOLOs \
         80). A model counts as equal only if all its convolutions and matrices are, one by one. \
         Pairs that share nothing in the table are compared in the notes."
    }

    fn unit(&self) -> &'static str {
        "MiB"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        SetOutcome::of(LAYERS, tables(corpus), Tables::score)
    }
}

#[derive(Debug, Deserialize)]
struct LayerRow {
    model: String,
    r#type: String,
    cin: u64,
    cout: u64,
    kernel: String,
    stride: Option<f64>,
    pad: String,
    dilation: Option<f64>,
    groups: Option<f64>,
    bias: u8,
}

#[derive(Debug, Deserialize)]
struct PairRow {
    model_a: String,
    model_b: String,
    shared_layers: usize,
    shared_bytes: u64,
}

struct Tables {
    /// Layers of each model by their signatures, in the tables' order of models.
    theirs: Vec<(String, Vec<Signature>)>,
    pairs: Vec<PairRow>,
}

fn tables(corpus: &Corpus<'_>) -> Result<Option<Tables>> {
    let root = corpus.root();
    let (Some(layers), Some(pairs)) = (root.text(LAYERS)?, root.text(PAIRS)?) else {
        return Ok(None);
    };
    let mut theirs: Vec<(String, Vec<Signature>)> = Vec::new();
    for row in rows::<LayerRow>(&layers, LAYERS)? {
        let signature = row.signature().ok_or_else(|| {
            InputError::new(format!("a layer that cannot be read: {row:?}")).in_file(LAYERS)
        })?;
        match theirs.last_mut() {
            Some((model, signatures)) if *model == row.model => signatures.push(signature),
            _ => theirs.push((row.model, vec![signature])),
        }
    }
    Ok(Some(Tables { theirs, pairs: rows(&pairs, PAIRS)? }))
}

fn rows<T: for<'de> Deserialize<'de>>(text: &str, file: &str) -> Result<Vec<T>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let wrong = |error: csv::Error| InputError::new(error.to_string()).in_file(file);
    reader.deserialize().map(|row| row.map_err(wrong)).collect()
}

impl LayerRow {
    fn signature(&self) -> Option<Signature> {
        let sides = |text: &str| {
            let (rows, columns) = text.split_once('x')?;
            Some((rows.parse::<u64>().ok()?, columns.parse::<u64>().ok()?))
        };
        let bias = self.bias != 0;
        let dtype = DType::F32;
        if self.r#type != "conv" {
            let (kind, shape) = (Kind::Linear, vec![self.cout, self.cin]);
            return Some(Signature { kind, shape, bias, dtype, geometry: None });
        }
        let groups = self.groups? as u64;
        let (rows, columns) = sides(&self.kernel)?;
        let shape = vec![self.cout, self.cin.checked_div(groups)?, rows, columns];
        let padding = sides(&self.pad)?;
        let (stride, dilation) = (self.stride? as u64, self.dilation? as u64);
        let geometry = Some(Geometry { stride, padding, dilation, groups });
        Some(Signature { kind: Kind::Convolution, shape, bias, dtype, geometry })
    }
}

/// The tables' heads: of detectors with the class of nothing, of the YOLOs those of COCO.
fn ours(name: &str) -> Result<ModelLayers> {
    let classes = if name.starts_with("yolo") { 80 } else { 2 };
    let model = foretrain_workload::known(name)?.for_classes(classes)?;
    Ok(ModelLayers::of(&model, DType::F32))
}

impl Tables {
    fn score(self) -> SetOutcome {
        let mut outcome = SetOutcome::default();
        let mut models: Vec<ModelLayers> = Vec::new();
        let mut equal = 0;
        for (name, theirs) in &self.theirs {
            let own = match ours(name) {
                Ok(own) => ModelLayers { name: name.clone(), ..own },
                Err(error) => {
                    let why = error.to_string();
                    outcome.skipped.push(Skipped { what: name.clone(), why });
                    continue;
                }
            };
            outcome.rows.push(Row {
                group: "layers of a model".into(),
                what: name.clone(),
                predicted: mib(own.bytes()),
                measured: mib(theirs.iter().map(Signature::bytes).sum()),
                ..Row::default()
            });
            match difference(&own, theirs) {
                None => equal += 1,
                Some(what) => outcome.notes.push(format!("{name} differs: {what}")),
            }
            models.push(own);
        }
        outcome.notes.push(format!(
            "{equal} of {} models have the table's layers, one by one",
            self.theirs.len()
        ));
        if let Ok(workload) = Workload::new(models, Rule::Exact) {
            self.score_pairs(&workload, &mut outcome);
        }
        outcome
    }

    fn score_pairs(&self, workload: &Workload, outcome: &mut SetOutcome) {
        let name = |model: usize| workload.models()[model].name.clone();
        let found = workload.pairs().into_iter().map(|pair| ((name(pair.a), name(pair.b)), pair));
        let found: BTreeMap<(String, String), Pair> = found.collect();
        let (mut agree, mut compared) = (0, 0);
        for row in &self.pairs {
            let key = (row.model_a.clone(), row.model_b.clone());
            let Some(pair) = found.get(&key) else { continue };
            compared += 1;
            let theirs = (row.shared_layers, Bytes::new(row.shared_bytes));
            let what = format!("{} and {}", row.model_a, row.model_b);
            if (pair.layers, pair.bytes) == theirs {
                agree += 1;
            } else {
                let (layers, bytes) = theirs;
                outcome.notes.push(format!(
                    "{what}: {} layers, {} instead of {layers} layers, {bytes}",
                    pair.layers, pair.bytes
                ));
            }
            if row.shared_bytes > 0 {
                outcome.rows.push(Row {
                    group: "shared by a pair".into(),
                    what,
                    predicted: mib(pair.bytes),
                    measured: mib(Bytes::new(row.shared_bytes)),
                    ..Row::default()
                });
            }
        }
        outcome.notes.push(format!(
            "{agree} of {compared} pairs share as many layers and bytes as in the table"
        ));
    }
}

fn mib(bytes: Bytes) -> f64 {
    bytes.as_f64() / f64::from(1 << 20)
}

/// The layers that only one side has; `None` if both have the same.
fn difference(own: &ModelLayers, theirs: &[Signature]) -> Option<String> {
    let mut counts: BTreeMap<&Signature, i64> = BTreeMap::new();
    for layer in &own.layers {
        *counts.entry(&layer.signature).or_default() += 1;
    }
    for signature in theirs {
        *counts.entry(signature).or_default() -= 1;
    }
    counts.retain(|_, count| *count != 0);
    let side = |more: bool| {
        let only = counts.iter().filter(|(_, count)| (**count > 0) == more);
        let named: Vec<String> =
            only.map(|(signature, count)| format!("{} x {signature}", count.abs())).collect();
        if named.is_empty() { "nothing".into() } else { named.join(", ") }
    };
    (!counts.is_empty()).then(|| format!("only here {}; only there {}", side(true), side(false)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(layers: &str, pairs: &str) -> SetOutcome {
        let theirs = rows::<LayerRow>(layers, "layers").unwrap();
        let name = theirs[0].model.clone();
        let theirs = vec![(name, theirs.iter().map(|row| row.signature().unwrap()).collect())];
        Tables { theirs, pairs: rows(pairs, "pairs").unwrap() }.score()
    }

    const HEAD: &str = "model,idx,type,cin,cout,kernel,stride,pad,dilation,groups,bias,params\n";
    const PAIR: &str = "model_a,model_b,shared_layers,shared_bytes\n";

    /// The figures of AlexNet are those of its paper's second form with two classes.
    fn alexnet() -> String {
        let convolutions = [(3, 64, 11, 4, 2), (64, 192, 5, 1, 2), (192, 384, 3, 1, 1)];
        let more = [(384, 256, 3, 1, 1), (256, 256, 3, 1, 1)];
        let mut text = HEAD.to_owned();
        for (inputs, outputs, side, stride, pad) in convolutions.into_iter().chain(more) {
            text += &format!(
                "alexnet,0,conv,{inputs},{outputs},{side}x{side},{stride}.0,{pad}x{pad},1.0,1.0,1,0\n"
            );
        }
        for (inputs, outputs) in [(9216, 4096), (4096, 4096), (4096, 2)] {
            text += &format!("alexnet,0,linear,{inputs},{outputs},,,,,,1,0\n");
        }
        text
    }

    #[test]
    fn equal_tables_agree_and_others_say_where_they_do_not() {
        let pairs = format!("{PAIR}alexnet,alexnet,8,228048136\n");
        let outcome = table(&alexnet(), &pairs);
        assert_eq!(outcome.rows.len(), 2);
        assert!(outcome.rows.iter().all(|row| row.predicted == row.measured), "{outcome:?}");
        assert!(outcome.notes.iter().all(|note| note.starts_with("1 of 1")), "{:?}", outcome.notes);

        let wrong = alexnet().replace("256,256,3x3", "256,256,5x5");
        let outcome = table(&wrong, &pairs.replace(",8,", ",7,"));
        let notes = outcome.notes.join("\n");
        assert!(notes.contains("only there 1 x conv 256->256 5x5"), "{notes}");
        assert!(notes.contains("8 layers, 217.5 MiB instead of 7 layers"), "{notes}");
    }

    #[test]
    fn unknown_models_are_listed() {
        let outcome = table(&alexnet().replace("alexnet", "alexnot"), PAIR);
        assert!(outcome.rows.is_empty());
        assert!(outcome.skipped[0].why.contains("no model"), "{:?}", outcome.skipped);
    }
}
