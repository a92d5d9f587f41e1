//! Layouts as people write them: `tp=8,pp=4,vpp=2,zero=1,sp,recompute=full`.

use std::fmt;
use std::str::FromStr;

use foretrain_core::{InputError, Result, suggest};

use super::ranks::dimension;
use super::{ContextMethod, Dimension, Layout, Order, Recompute, Schedule, Sharding};

/// Choices that were made; the rest is open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Tensor parallelism.
    pub tensor: Option<u32>,
    /// Stages.
    pub pipeline: Option<u32>,
    /// Replicas.
    pub data: Option<u32>,
    /// Context parallelism.
    pub context: Option<u32>,
    /// Expert parallelism.
    pub expert: Option<u32>,
    /// Tensor parallelism within experts.
    pub expert_tensor: Option<u32>,
    /// Chunks per stage.
    pub virtual_stages: Option<u32>,
    /// Schedule of the pipeline.
    pub schedule: Option<Schedule>,
    /// Sequence parallelism.
    pub sequence_parallel: Option<bool>,
    /// How sequences are divided.
    pub context_method: Option<ContextMethod>,
    /// What replicas divide.
    pub sharding: Option<Sharding>,
    /// Replicas within which parameters are divided.
    pub shard_group: Option<u32>,
    /// What is formed again.
    pub recompute: Option<Recompute>,
    /// Samples per pass.
    pub micro_batch: Option<u64>,
    /// Layers per stage.
    pub stage_layers: Option<Vec<u32>>,
    /// Optimiser on the host.
    pub offload_optimiser: Option<bool>,
    /// Activations on the host.
    pub offload_activations: Option<bool>,
    /// Order of dimensions.
    pub order: Option<Order>,
}

/// Most ranks that a dimension, or a job, may have: far above any machine, far below overflow.
const MOST: u32 = 1 << 24;
const KEYS: &[&str] = &[
    "tp",
    "pp",
    "dp",
    "cp",
    "ep",
    "etp",
    "vpp",
    "schedule",
    "sp",
    "cp-method",
    "zero",
    "fsdp",
    "hsdp",
    "recompute",
    "mbs",
    "stages",
    "offload",
    "order",
];

impl Wish {
    /// The layout that these choices make on `devices`: replicas take what the other dimensions
    /// leave, and open choices are the simplest ones.
    ///
    /// # Errors
    /// If the degrees do not multiply to the devices.
    pub fn complete(&self, devices: u32) -> Result<Layout> {
        let model = [self.tensor, self.pipeline, self.context]
            .iter()
            .try_fold(1_u32, |product, degree| product.checked_mul(degree.unwrap_or(1)))
            .filter(|&product| product <= MOST);
        let Some(model) = model else {
            return Err(InputError::new("tp x pp x cp is more than any machine has devices"));
        };
        if devices > MOST {
            return Err(InputError::new(format!(
                "{devices} devices are more than any machine has"
            ))
            .hint(format!("{MOST} at most")));
        }
        let data = match self.data {
            Some(data) => data,
            None if devices.is_multiple_of(model) && devices > 0 => devices / model,
            None => {
                return Err(InputError::new(format!(
                    "tp x pp x cp = {model} does not divide {devices} devices"
                ))
                .hint("choose degrees whose product divides the devices, or give --gpus to fit"));
            }
        };
        let whole = u64::from(model) * u64::from(data);
        if whole != u64::from(devices) {
            return Err(InputError::new(format!(
                "tp x pp x cp x dp = {whole}, but there are {devices} devices"
            ))
            .hint("leave dp out, and it takes what is left"));
        }
        let tensor = self.tensor.unwrap_or(1);
        let sharding = match (self.sharding, self.shard_group) {
            (Some(sharding), _) => sharding,
            (None, Some(_)) => Sharding::Parameters,
            (None, None) => Sharding::None,
        };
        Ok(Layout {
            tensor,
            pipeline: self.pipeline.unwrap_or(1),
            data,
            context: self.context.unwrap_or(1),
            expert: self.expert.unwrap_or(1),
            expert_tensor: self
                .expert_tensor
                .unwrap_or_else(|| usual_expert_tensor(self.expert.unwrap_or(1), tensor)),
            virtual_stages: self.virtual_stages.unwrap_or(1),
            schedule: self.schedule.unwrap_or_default(),
            sequence_parallel: self.sequence_parallel.unwrap_or(false),
            context_method: self.context_method.unwrap_or_default(),
            sharding,
            shard_group: self.shard_group,
            recompute: self.recompute.unwrap_or_default(),
            micro_batch: self.micro_batch.unwrap_or(1),
            stage_layers: self.stage_layers.clone(),
            offload_optimiser: self.offload_optimiser.unwrap_or(false),
            offload_activations: self.offload_activations.unwrap_or(false),
            order: self.order.unwrap_or_default(),
        })
    }
}

/// Where experts are divided among ranks, each is whole on its rank; else it is divided as all else.
const fn usual_expert_tensor(expert: u32, tensor: u32) -> u32 {
    if expert > 1 { 1 } else { tensor }
}

impl FromStr for Wish {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self> {
        let mut wish = Self::default();
        let mut seen: Vec<&str> = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) = match part.split_once('=') {
                Some((key, value)) => (key.trim(), Some(value.trim())),
                None => (part, None),
            };
            if seen.contains(&key) {
                return Err(InputError::new(format!("\"{key}\" is given twice")));
            }
            wish.set(key, value).map_err(|error| error.at(format!("layout, \"{part}\"")))?;
            seen.push(key);
        }
        Ok(wish)
    }
}

impl Wish {
    fn set(&mut self, key: &str, value: Option<&str>) -> Result<()> {
        let degree = || degree(key, value);
        match key {
            "tp" => self.tensor = Some(degree()?),
            "pp" => self.pipeline = Some(degree()?),
            "dp" => self.data = Some(degree()?),
            "cp" => self.context = Some(degree()?),
            "ep" => self.expert = Some(degree()?),
            "etp" => self.expert_tensor = Some(degree()?),
            "vpp" => self.virtual_stages = Some(degree()?),
            "mbs" => self.micro_batch = Some(u64::from(degree()?)),
            "schedule" => self.schedule = Some(one_of(value, Schedule::ALL, Schedule::as_str)?),
            "sp" => self.sequence_parallel = Some(switch(key, value)?),
            "cp-method" => self.context_method = Some(one_of(value, METHODS, method_word)?),
            "zero" => self.sharding = Some(one_of(value, SHARDINGS, Sharding::as_str)?),
            "fsdp" => {
                let on = switch(key, value)?;
                self.sharding = Some(if on { Sharding::Parameters } else { Sharding::None });
            }
            "hsdp" => self.shard_group = Some(degree()?),
            "recompute" => self.recompute = Some(recompute(value)?),
            "stages" => self.stage_layers = Some(stages(value)?),
            "offload" => self.offload(value)?,
            "order" => self.order = Some(order(value)?),
            _ => {
                let mut error = InputError::new(format!("\"{key}\" is no part of a layout"));
                if let Some(near) = suggest::nearest(key, KEYS.iter().copied()) {
                    error = error.hint(format!("did you mean \"{near}\"?"));
                }
                return Err(error.hint(format!("one of {}", KEYS.join(", "))));
            }
        }
        Ok(())
    }

    fn offload(&mut self, value: Option<&str>) -> Result<()> {
        for what in value.unwrap_or("").split('+').map(str::trim) {
            match what {
                "optimiser" | "optimizer" => self.offload_optimiser = Some(true),
                "activations" => self.offload_activations = Some(true),
                "none" => {
                    self.offload_optimiser = Some(false);
                    self.offload_activations = Some(false);
                }
                _ => {
                    return Err(InputError::new(
                        "expected optimiser, activations, or both joined by +",
                    ));
                }
            }
        }
        Ok(())
    }
}

fn degree(key: &str, value: Option<&str>) -> Result<u32> {
    let number = value.and_then(|value| value.parse::<u32>().ok());
    match number {
        Some(number) if (1..=MOST).contains(&number) => Ok(number),
        _ => Err(InputError::new(format!(
            "\"{key}\" takes a whole number from 1 to {MOST}, such as {key}=4"
        ))),
    }
}

fn switch(key: &str, value: Option<&str>) -> Result<bool> {
    match value {
        None | Some("1" | "true" | "on" | "yes") => Ok(true),
        Some("0" | "false" | "off" | "no") => Ok(false),
        Some(_) => Err(InputError::new(format!("\"{key}\" is on or off"))),
    }
}

const METHODS: [ContextMethod; 3] =
    [ContextMethod::Ring, ContextMethod::AllGather, ContextMethod::Ulysses];
const SHARDINGS: [Sharding; 4] =
    [Sharding::None, Sharding::Optimiser, Sharding::Gradients, Sharding::Parameters];

const fn method_word(method: ContextMethod) -> &'static str {
    match method {
        ContextMethod::Ring => "ring",
        ContextMethod::AllGather => "all-gather",
        ContextMethod::Ulysses => "ulysses",
    }
}

fn one_of<T: Copy, const N: usize>(
    value: Option<&str>,
    all: [T; N],
    word: impl Fn(T) -> &'static str,
) -> Result<T> {
    let found = all.into_iter().find(|&one| value == Some(word(one)));
    found.ok_or_else(|| {
        let words: Vec<_> = all.into_iter().map(word).collect();
        InputError::new(format!("expected one of {}", words.join(", ")))
    })
}

fn recompute(value: Option<&str>) -> Result<Recompute> {
    let wrong =
        || InputError::new("recompute is none, selective, full or a number of layers per stage");
    Ok(match value.unwrap_or("full") {
        "none" => Recompute::None,
        "selective" => Recompute::Selective,
        "full" => Recompute::Full,
        number => Recompute::Layers(number.parse().map_err(|_| wrong())?),
    })
}

fn stages(value: Option<&str>) -> Result<Vec<u32>> {
    let wrong = || InputError::new("stages lists the layers of each stage, such as stages=7/9/9/9");
    let layers = value.ok_or_else(wrong)?.split('/').map(|layers| layers.trim().parse::<u32>());
    let layers = layers.collect::<std::result::Result<Vec<_>, _>>().map_err(|_| wrong())?;
    if layers.iter().map(|&n| u64::from(n)).sum::<u64>() > u64::from(MOST) {
        return Err(wrong());
    }
    Ok(layers)
}

fn order(value: Option<&str>) -> Result<Order> {
    let words: Vec<_> = value.unwrap_or("").split('-').collect();
    let wrong =
        || InputError::new("order names tp, cp, dp and pp once each, such as order=tp-cp-dp-pp");
    let dimensions = words.iter().map(|word| dimension(word)).collect::<Result<Vec<_>>>()?;
    let order: [Dimension; 4] = dimensions.try_into().map_err(|_| wrong())?;
    let once = order.iter().enumerate().all(|(at, one)| !order[..at].contains(one));
    if once { Ok(Order(order)) } else { Err(wrong()) }
}

/// As it is read: what differs from the simplest layout.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tp={},pp={},dp={}", self.tensor, self.pipeline, self.data)?;
        let simple = Self::default();
        let degrees = [("cp", self.context), ("ep", self.expert), ("vpp", self.virtual_stages)];
        for (key, degree) in degrees.into_iter().filter(|&(_, degree)| degree > 1) {
            write!(f, ",{key}={degree}")?;
        }
        if self.expert_tensor != usual_expert_tensor(self.expert, self.tensor) {
            write!(f, ",etp={}", self.expert_tensor)?;
        }
        write!(f, ",mbs={}", self.micro_batch)?;
        if self.pipeline > 1 && self.schedule != simple.schedule {
            write!(f, ",schedule={}", self.schedule.as_str())?;
        }
        if self.sequence_parallel {
            f.write_str(",sp")?;
        }
        if self.context > 1 && self.context_method != simple.context_method {
            write!(f, ",cp-method={}", method_word(self.context_method))?;
        }
        if self.sharding != simple.sharding {
            write!(f, ",zero={}", self.sharding.as_str())?;
        }
        if let Some(group) = self.shard_group {
            write!(f, ",hsdp={group}")?;
        }
        match self.recompute {
            Recompute::None => {}
            Recompute::Selective => f.write_str(",recompute=selective")?,
            Recompute::Full => f.write_str(",recompute=full")?,
            Recompute::Layers(layers) => write!(f, ",recompute={layers}")?,
        }
        if let Some(stages) = &self.stage_layers {
            let words: Vec<_> = stages.iter().map(u32::to_string).collect();
            write!(f, ",stages={}", words.join("/"))?;
        }
        match (self.offload_optimiser, self.offload_activations) {
            (true, true) => f.write_str(",offload=optimiser+activations")?,
            (true, false) => f.write_str(",offload=optimiser")?,
            (false, true) => f.write_str(",offload=activations")?,
            (false, false) => {}
        }
        if self.order != simple.order {
            let words: Vec<_> = self.order.0.iter().map(|one| one.as_str()).collect();
            write!(f, ",order={}", words.join("-"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for text in [
            "tp=8,pp=4,dp=2,mbs=1",
            "tp=2,pp=8,dp=4,cp=2,ep=8,vpp=3,etp=2,mbs=4,sp,zero=1,recompute=selective",
            "tp=1,pp=4,dp=2,mbs=3,schedule=zb-v,recompute=2,stages=7/9/9/9,order=tp-cp-pp-dp",
            "tp=1,pp=1,dp=64,cp=4,mbs=1,cp-method=ulysses,zero=3,hsdp=8,offload=optimiser+activations",
        ] {
            let wish: Wish = text.parse().unwrap();
            let devices = wish.tensor.unwrap()
                * wish.pipeline.unwrap()
                * wish.data.unwrap()
                * wish.context.unwrap_or(1);
            let layout = wish.complete(devices).unwrap();
            let again: Wish = layout.to_string().parse().unwrap();
            assert_eq!(again.complete(devices).unwrap(), layout, "{text}");
        }
    }

    #[test]
    fn replicas_take_what_is_left() {
        let wish: Wish = "tp=8, pp=2".parse().unwrap();
        assert_eq!(wish.complete(64).unwrap().data, 4);
        assert!(wish.complete(24).is_err());
        assert!("tp=2,dp=3".parse::<Wish>().unwrap().complete(8).is_err());
    }

    #[test]
    fn errors_name_the_part_and_the_way() {
        let message = |text: &str| text.parse::<Wish>().unwrap_err().to_string();
        assert!(message("tp=0").contains("tp=0"));
        assert!(message("tpp=3").contains("tp"));
        assert!(message("tp=2,tp=4").contains("twice"));
        assert!(message("tp=99999999999").contains("whole number"));
        assert!(message("order=tp-tp-dp-pp").contains("once"));
        assert!(message("stages=1/x").contains("stages"));
        assert!("tp=16777216,pp=16777216".parse::<Wish>().unwrap().complete(8).is_err());
    }
}
