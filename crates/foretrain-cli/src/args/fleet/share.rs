//! The arguments of `fleet share`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use foretrain::core::{DType, Nanos};
use foretrain::fleet::sharing::Rule;

use crate::args::values;
use crate::commands::fleet::share::{Accuracy, Options};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foretrain fleet share resnet-50 faster-rcnn-resnet-50-c5 yolov3 --classes 2
  foretrain fleet share camera-1/model.safetensors camera-2/ vgg-16
  foretrain fleet share vgg-16 vgg-19 alexnet --accuracy 0.8 --epoch-time 35s")]
pub(super) struct Share {
    /// Models that one device serves: names, files that describe one (Hugging Face config.json,
    /// TOML, ONNX, execution trace), safetensors files, their index.json or directory. One named
    /// several times is served several times.
    #[arg(value_name = "MODEL", required = true)]
    models: Vec<String>,
    /// Classes of models that are known by name, in the place of the published ones.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    classes: Option<u64>,
    /// Type of the weights of described models, as in f16.
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = dtype)]
    dtype: DType,
    /// Which layers count as equal.
    #[arg(long, value_name = "RULE", default_value = "exact")]
    rule: RuleArg,
    /// How retraining ends: always, never, the probability that a model keeps its accuracy, or a
    /// table of outcomes in CSV. Makes a plan.
    #[arg(long, value_name = "ANSWER", value_parser = accuracy, help_heading = "Plan")]
    accuracy: Option<Accuracy>,
    /// Most epochs of a retraining.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000),
          requires = "accuracy", help_heading = "Plan")]
    epochs: u32,
    /// Time of an epoch, of all models or as MODEL=TIME of one; may be given several times.
    #[arg(long, value_name = "TIME", value_parser = epoch_time, requires = "accuracy", help_heading = "Plan")]
    epoch_time: Vec<(Option<String>, Nanos)>,
    /// Plans with other luck that the spread is taken of.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(0..=100_000),
          requires = "accuracy", help_heading = "Plan")]
    draws: u32,
    /// Seed of the first plan's luck.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        requires = "accuracy",
        help_heading = "Plan"
    )]
    seed: u64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RuleArg {
    /// Equal in all they do.
    Exact,
    /// Equal but for the stride.
    AnyStride,
    /// Weights of equal shape and type.
    Weights,
}

fn dtype(text: &str) -> Result<DType, String> {
    DType::parse(text).ok_or_else(|| "expected a type such as f32, f16, bf16 or i8".into())
}

fn accuracy(text: &str) -> Result<Accuracy, String> {
    match text {
        "always" => Ok(Accuracy::Always),
        "never" => Ok(Accuracy::Never),
        _ => match text.parse::<f64>() {
            Ok(chance) if (0.0..=1.0).contains(&chance) => Ok(Accuracy::Chance(chance)),
            Ok(chance) => Err(format!("{chance} is no probability; expected 0 to 1")),
            Err(_) => Ok(Accuracy::Table(PathBuf::from(text))),
        },
    }
}

fn epoch_time(text: &str) -> Result<(Option<String>, Nanos), String> {
    let (model, time) = match text.rsplit_once('=') {
        Some((model, time)) => (Some(model.to_owned()), time),
        None => (None, text),
    };
    let time = values::time(time)?;
    if time <= Nanos::ZERO {
        return Err("expected a time above zero, as in 35s".into());
    }
    Ok((model, time))
}

impl From<Share> for Options {
    fn from(args: Share) -> Self {
        Self {
            models: args.models,
            classes: args.classes,
            dtype: args.dtype,
            rule: match args.rule {
                RuleArg::Exact => Rule::Exact,
                RuleArg::AnyStride => Rule::AnyStride,
                RuleArg::Weights => Rule::Weights,
            },
            accuracy: args.accuracy,
            epochs: args.epochs,
            epoch_times: args.epoch_time,
            draws: args.draws,
            seed: args.seed,
        }
    }
}
