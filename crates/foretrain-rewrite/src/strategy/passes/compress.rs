//! Shrinking what is sent.

use foretrain_core::{InputError, Result};
use foretrain_cost::LinearCost;
use foretrain_cost::primitives::{Codec, ExchangeKind, Scheme};
use foretrain_graph::CollectiveKind;

use crate::strategy::draft::{Draft, Exchange};
use crate::strategy::parameters::{Kind, Parameter};
use crate::strategy::pass::{Pass, PassKind, Stage};

pub(super) const KIND: PassKind = PassKind {
    name: "compress",
    stage: Stage::Compress,
    about: "Encodes gradients before they are sent and decodes them afterwards. Sums of 16-bit casts and random-k are made on the way; the others go round whole, or are summed decoded on servers.",
    source: "HiPress (SOSP '21) for costs and the selective plan; ratios 1/2, 1/32, 1/16, 2k, k",
    parameters: &[
        Parameter::new(
            "scheme",
            Kind::Word(&["half", "fp16", "bf16", "one-bit", "two-bit", "top-k", "random-k"]),
            "half",
            "How.",
        ),
        Parameter::new(
            "kept",
            Kind::Number,
            "0.01",
            "Part of the elements that top-k and random-k keep.",
        ),
        Parameter::new(
            "selective",
            Kind::Flag,
            "false",
            "Only where it pays by the costs of encoding, sending and decoding.",
        ),
    ],
    build: &|values| {
        let kept = values.number("kept").unwrap_or(0.01);
        if !(kept > 0.0 && kept <= 1.0) {
            let message = format!("kept = {kept}: expected a part above 0, at most 1");
            return Err(InputError::new(message).hint("one element in a hundred is kept=0.01"));
        }
        let codec = Codec::new(Scheme::parse(values.word("scheme"))?, kept);
        Ok(Box::new(Compress { codec, selective: values.flag("selective") }))
    },
};

struct Compress {
    codec: Codec,
    selective: bool,
}

impl Pass for Compress {
    fn apply(&self, draft: &mut Draft<'_>) -> Result<()> {
        draft.costs.primitives().codec(self.codec.scheme)?;
        let mut left = 0;
        for i in 0..draft.exchanges.len() {
            let exchange = &draft.exchanges[i];
            // Gathered parameters are used as they are.
            let is_gradient = exchange.kind != CollectiveKind::AllGather;
            if is_gradient && (!self.selective || self.pays(draft, exchange)?) {
                draft.exchanges[i].codec = Some(self.codec);
            } else {
                left += 1;
            }
        }
        if self.selective {
            draft.notes.push(format!(
                "{} compression of {} of {} exchanges pays",
                self.codec.scheme.as_str(),
                draft.exchanges.len() - left,
                draft.exchanges.len()
            ));
        }
        Ok(())
    }
}

impl Compress {
    /// HiPress's test: the cheaper of raw and compressed, each in its best number of partitions.
    fn pays(&self, draft: &Draft<'_>, exchange: &Exchange) -> Result<bool> {
        let costs = draft.costs;
        let machines = costs.nodes().min(exchange.scope.size);
        if machines < 2 {
            return Ok(false);
        }
        let one = costs.wire(exchange.bytes);
        let latency = one.latency.nanos() as f64;
        let moving = (one.whole.value.nanos() as f64 - latency).max(0.0);
        let step = LinearCost::new(latency, moving / exchange.bytes.as_f64().max(1.0));
        let (scheme, ratio) = (self.codec.scheme, self.codec.ratio);
        let exchange_costs = costs.primitives().exchange(machines, scheme, ratio, step)?;
        let bytes = exchange.bytes.as_f64();
        Ok(exchange_costs.choose(ExchangeKind::Ring, bytes, ratio).compress())
    }
}
