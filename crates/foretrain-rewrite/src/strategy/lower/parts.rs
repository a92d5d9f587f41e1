//! The nodes that an exchange becomes.

use foretrain_core::{Bytes, Estimate, Nanos};
use foretrain_cost::Method;
use foretrain_cost::primitives::Codec;
use foretrain_graph::{CollectiveKind, NodeKind};

use super::servers::servers;
use crate::strategy::costs::{Call, Cost, Scope};
use crate::strategy::draft::{Draft, Exchange, Way};

/// Rings of more steps are not unrolled.
const MOST_UNROLLED: u32 = 256;

/// An exclusive resource of one replica's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    Collectives,
    Local,
    Outward,
    Inward,
    Servers,
    Codec,
}

impl Lane {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Collectives => "gradient synchronisation",
            Self::Local => "gradient synchronisation within the node",
            Self::Outward => "NIC outwards",
            Self::Inward => "NIC inwards",
            Self::Servers => "servers",
            Self::Codec => "compression",
        }
    }
}

/// One node to be.
pub(super) struct Part {
    pub(super) lane: Lane,
    pub(super) kind: NodeKind,
    pub(super) collective: Option<CollectiveKind>,
    pub(super) name: String,
    pub(super) bytes: Bytes,
    pub(super) cost: Cost,
    pub(super) call: Option<Call>,
}

/// Parts that run side by side, after all of the stage before.
pub(super) type Chain = Vec<Vec<Part>>;

/// The stages of one exchange.
pub(super) fn chain(draft: &Draft<'_>, exchange: &Exchange) -> Chain {
    let codec = exchange.codec;
    let mut chain = match (exchange.way, codec) {
        // Encoded gradients that cannot be added go round whole.
        (Way::Library | Way::Ring { .. } | Way::Tree | Way::Hierarchical, Some(codec))
            if !codec.scheme.sums_encoded() && exchange.kind == CollectiveKind::AllReduce =>
        {
            gathered(draft, exchange, codec)
        }
        (Way::Library, _) => vec![vec![collective(draft, exchange, exchange.kind, None)]],
        (Way::Ring { unrolled: false }, _) => {
            vec![vec![collective(draft, exchange, exchange.kind, Some(Method::Ring))]]
        }
        (Way::Tree, _) => {
            vec![vec![collective(draft, exchange, exchange.kind, Some(Method::Tree))]]
        }
        (Way::Ring { unrolled: true }, _) => ring(draft, exchange),
        (Way::Hierarchical, _) => hierarchical(draft, exchange),
        (Way::Servers(plan), _) => servers(draft, exchange, plan),
    };
    if let Some(codec) = codec {
        let costs = draft.costs.primitives().codec.get(&codec.scheme).copied();
        if let Some(cost) = costs {
            let raw = exchange.bytes;
            let word = codec.scheme.as_str();
            let encode = coding(format!("encode {word}"), raw, cost.encode.time(raw));
            let copies = match exchange.way {
                Way::Servers(_) => 1,
                _ if codec.scheme.sums_encoded() => 1,
                _ => u64::from(exchange.scope.size),
            };
            let times = |t: Estimate<Nanos>| t.map(|ns| ns * copies as f64);
            let decode = coding(format!("decode {word}"), raw, times(cost.decode.time(raw)));
            chain.insert(0, vec![encode]);
            chain.push(vec![decode]);
        }
    }
    chain
}

fn coding(name: String, bytes: Bytes, time: Estimate<Nanos>) -> Part {
    Part {
        lane: Lane::Codec,
        kind: NodeKind::Kernel,
        collective: None,
        name,
        bytes,
        cost: Cost::work(time),
        call: None,
    }
}

pub(super) fn wire_bytes(exchange: &Exchange) -> Bytes {
    exchange.codec.map_or(exchange.bytes, |codec| codec.wire_bytes(exchange.bytes))
}

fn collective(
    draft: &Draft<'_>,
    exchange: &Exchange,
    kind: CollectiveKind,
    method: Option<Method>,
) -> Part {
    let call = Call { kind, bytes: wire_bytes(exchange), scope: exchange.scope, method };
    let lane = Lane::Collectives;
    operation(draft, lane, call)
}

pub(super) fn operation(draft: &Draft<'_>, lane: Lane, call: Call) -> Part {
    Part {
        lane,
        kind: NodeKind::Collective,
        collective: Some(call.kind),
        name: format!("gradient {}", call.kind),
        bytes: call.bytes,
        cost: draft.costs.collective(&call),
        call: Some(call),
    }
}

/// Every replica gets every other's encoded gradient.
fn gathered(draft: &Draft<'_>, exchange: &Exchange, codec: Codec) -> Chain {
    let each = codec.wire_bytes(exchange.bytes);
    let bytes = Bytes::new(each.get().saturating_mul(u64::from(exchange.scope.size)));
    let kind = CollectiveKind::AllGather;
    let call = Call { kind, bytes, scope: exchange.scope, method: None };
    vec![vec![operation(draft, Lane::Collectives, call)]]
}

/// `2(n-1)` steps, each a message to the next and (in the first half) a sum.
fn ring(draft: &Draft<'_>, exchange: &Exchange) -> Chain {
    let n = exchange.scope.size.max(1);
    let halves = if exchange.kind == CollectiveKind::AllReduce { 2 } else { 1 };
    if n < 2 || halves * (n - 1) > MOST_UNROLLED {
        return vec![vec![collective(draft, exchange, exchange.kind, Some(Method::Ring))]];
    }
    let part = Bytes::new(wire_bytes(exchange).get().div_ceil(u64::from(n)));
    let sums = exchange.kind != CollectiveKind::AllGather;
    let mut chain = Chain::new();
    for step in 0..halves * (n - 1) {
        chain.push(vec![message(draft, Lane::Outward, "ring step", part)]);
        if sums && step < n - 1 {
            let time = draft.costs.primitives().aggregate.time(part);
            chain.push(vec![sum(Lane::Codec, part, time)]);
        }
    }
    chain
}

fn hierarchical(draft: &Draft<'_>, exchange: &Exchange) -> Chain {
    let local = draft.costs.replicas_per_node().min(exchange.scope.size).max(1);
    let nodes = exchange.scope.size.div_ceil(local);
    if exchange.scope.stride != 1 || local == 1 || nodes == 1 {
        return vec![vec![collective(draft, exchange, exchange.kind, None)]];
    }
    let bytes = wire_bytes(exchange);
    let shard = Bytes::new(bytes.get().div_ceil(u64::from(local)));
    let within = Scope::contiguous(local);
    let between = Scope { size: nodes, stride: local };
    let call = |kind, bytes, scope| Call { kind, bytes, scope, method: None };
    let scatter = call(CollectiveKind::ReduceScatter, bytes, within);
    let gather = call(CollectiveKind::AllGather, bytes, within);
    let outer = operation(draft, Lane::Collectives, call(exchange.kind, shard, between));
    let mut chain = vec![vec![outer]];
    if exchange.kind != CollectiveKind::AllGather {
        chain.insert(0, vec![operation(draft, Lane::Local, scatter)]);
    }
    if exchange.kind != CollectiveKind::ReduceScatter {
        chain.push(vec![operation(draft, Lane::Local, gather)]);
    }
    chain
}

/// `own` bytes on a NIC, with the link's latency behind it.
pub(super) fn message(draft: &Draft<'_>, lane: Lane, name: &str, own: Bytes) -> Part {
    Part {
        lane,
        kind: NodeKind::PointToPoint,
        collective: Some(if lane == Lane::Inward {
            CollectiveKind::Recv
        } else {
            CollectiveKind::Send
        }),
        name: name.to_owned(),
        bytes: own,
        cost: draft.costs.wire(own),
        call: None,
    }
}

/// How long a part holds its lane, and how long its result takes after that.
///
/// A collective holds its stream from launch to end; a message holds the link only while its bytes
/// move. With a credit `k` parts are in flight at once and the latency of one hides behind the bytes
/// of the others: each holds the link for `max(bytes, (latency + bytes) / k)`.
pub(super) fn held(credit: Option<Bytes>, part: &Part) -> (Estimate<Nanos>, Nanos) {
    let Cost { whole, latency } = part.cost;
    let moving = (whole.value - latency).clamp_positive();
    let hold = match credit {
        Some(credit) if part.bytes > Bytes::ZERO && part.lane != Lane::Codec => {
            let flying = (credit.get() / part.bytes.get()).max(1);
            moving.max(whole.value.scale(1.0 / flying as f64))
        }
        _ if part.call.is_some() => whole.value,
        _ => moving,
    };
    if whole.value <= Nanos::ZERO {
        return (Estimate::exact(Nanos::ZERO), Nanos::ZERO);
    }
    let ratio = hold.nanos() as f64 / whole.value.nanos() as f64;
    (whole.map(|ns| ns * ratio), (whole.value - hold).clamp_positive())
}

/// Adding gradients up.
pub(super) fn sum(lane: Lane, bytes: Bytes, time: Estimate<Nanos>) -> Part {
    Part {
        lane,
        kind: NodeKind::PointToPoint,
        collective: Some(CollectiveKind::Reduce),
        name: "sum of gradients".into(),
        bytes,
        cost: Cost::work(time),
        call: None,
    }
}
