//! What is known of a job, as it is written in files and arguments.

use foretrain_core::{Bytes, DType, InputError, Result};
use foretrain_cost::Synchronisation;
use serde::Deserialize;

use super::value::{count, number, whole};
use crate::scaling::input::Known;

/// A number or text; what it means is decided by its key.
#[derive(Clone, Debug, PartialEq)]
pub struct Written(pub String);

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl serde::de::Visitor<'_> for Any {
            type Value = Written;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number or text")
            }
            fn visit_str<E>(self, text: &str) -> Result<Written, E> {
                Ok(Written(text.to_owned()))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Written, E> {
                Ok(Written(number.to_string()))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Written, E> {
                Ok(Written(number.to_string()))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Written, E> {
                Ok(Written(number.to_string()))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// The `[job]` table.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "docs/scaling.md explains the keys, Known what they become")]
pub struct JobSpec {
    pub gpus_per_node: Option<Written>,
    pub parameters: Option<Written>,
    pub trainable_parameters: Option<Written>,
    pub dtype: Option<String>,
    pub gradient_dtype: Option<String>,
    pub parameter_bytes: Option<Written>,
    pub gradient_bytes: Option<Written>,
    pub strategy: Option<String>,
    pub accumulation: Option<Written>,
    pub batch_per_gpu: Option<Written>,
    pub sync_every_micro_batch: Option<bool>,
    pub nic: Option<String>,
    pub same_global_batch: Option<bool>,
    pub base_step: Option<String>,
}

impl JobSpec {
    /// Fills in what `outer` knows and this does not.
    ///
    /// # Errors
    /// Names the key whose value cannot be read.
    pub fn resolve(&self, outer: &Known) -> Result<Known> {
        let mut known = outer.clone();
        set(&mut known.gpus_per_node, "gpus_per_node", &self.gpus_per_node, count)?;
        set(&mut known.accumulation, "accumulation", &self.accumulation, count)?;
        set(&mut known.batch_per_gpu, "batch_per_gpu", &self.batch_per_gpu, number)?;
        self.bytes(&mut known)?;
        if let Some(name) = &self.strategy {
            known.strategy = Some(at("strategy", Synchronisation::parse(name))?);
        }
        if let Some(nic) = &self.nic {
            known.nic = Some(at("nic", nic.parse())?);
        }
        if let Some(time) = &self.base_step {
            known.base_step = Some(at("base_step", time.parse())?);
        }
        known.synchronises_each = self.sync_every_micro_batch.unwrap_or(known.synchronises_each);
        known.same_global_batch = self.same_global_batch.unwrap_or(known.same_global_batch);
        Ok(known)
    }

    fn bytes(&self, known: &mut Known) -> Result<()> {
        let dtype = element("dtype", &self.dtype)?;
        let gradient_dtype = element("gradient_dtype", &self.gradient_dtype)?.or(dtype);
        let (mut all, mut trainable) = (None, None);
        set(&mut all, "parameters", &self.parameters, whole)?;
        set(&mut trainable, "trainable_parameters", &self.trainable_parameters, whole)?;
        if let (Some(all), Some(trainable)) = (all, trainable)
            && trainable > all
        {
            return Err(InputError::new(format!(
                "{trainable} trainable parameters of {all} in all"
            ))
            .at("trainable_parameters"));
        }
        let of = |dtype: Option<DType>, n: u64| Bytes::new(dtype.unwrap_or(DType::F32).bytes_of(n));
        let size = |text: &str| text.parse::<Bytes>();
        if let Some(all) = all {
            known.parameter_bytes = Some(of(dtype, all));
            known.gradient_bytes = Some(of(gradient_dtype, trainable.unwrap_or(all)));
        } else if let Some(trainable) = trainable {
            known.gradient_bytes = Some(of(gradient_dtype, trainable));
        }
        set(&mut known.parameter_bytes, "parameter_bytes", &self.parameter_bytes, size)?;
        set(&mut known.gradient_bytes, "gradient_bytes", &self.gradient_bytes, size)?;
        let counted = all.is_some() || trainable.is_some();
        if let Some(dtype) = gradient_dtype.or(counted.then_some(DType::F32)) {
            known.element_bytes = Some(dtype.bits().div_ceil(8));
        }
        if counted && dtype.is_none() && gradient_dtype.is_none() {
            known.assumed.push("parameters and gradients of 4 bytes each (no dtype given)".into());
        }
        Ok(())
    }
}

fn at<T>(key: &str, value: Result<T>) -> Result<T> {
    value.map_err(|error| error.at(key.to_owned()))
}

fn set<T>(
    into: &mut Option<T>,
    key: &str,
    written: &Option<Written>,
    read: impl Fn(&str) -> Result<T>,
) -> Result<()> {
    if let Some(written) = written {
        *into = Some(at(key, read(&written.0))?);
    }
    Ok(())
}

fn element(key: &str, written: &Option<String>) -> Result<Option<DType>> {
    let Some(name) = written else { return Ok(None) };
    let unknown = || {
        InputError::new(format!("unknown element type \"{name}\""))
            .at(key.to_owned())
            .hint("write fp32, fp16 or bf16")
    };
    DType::parse(name).map(Some).ok_or_else(unknown)
}
