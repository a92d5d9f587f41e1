//! Exchanges over servers.

use foretrain_core::Bytes;
use foretrain_graph::CollectiveKind;

use super::parts::{Chain, Lane, Part, message, operation, sum, wire_bytes};
use crate::strategy::costs::{Call, Scope};
use crate::strategy::draft::{Draft, Exchange, ServerPlan};

/// Push, sum, pull. With `n` workers of which each serves a share `g` of the gradient, a worker
/// sends `(1 - g) M` and, as a server, takes in `(n - 1) g M`; the answers go the other way. The
/// share is BytePS's optimum `(n - k) / (n^2 + k n - 2 k)` for `k` machines that only serve: `1 / n`
/// without them, nothing with as many as workers.
pub(super) fn servers(draft: &Draft<'_>, exchange: &Exchange, plan: ServerPlan) -> Chain {
    let per_node = if plan.local { draft.costs.replicas_per_node().max(1) } else { 1 };
    let local = per_node.min(exchange.scope.size);
    let workers = exchange.scope.size.div_ceil(local.max(1));
    let bytes = wire_bytes(exchange);
    let mut chain = Chain::new();
    if workers > 1 {
        let load = ServerLoad::of(plan, workers);
        let of = |share: f64| Bytes::new((bytes.as_f64() * share).round() as u64);
        let (sent, served) = (of(load.worker), of(load.server));
        let pair = |lane, name, own| message(draft, lane, name, own);
        let mut push = vec![pair(Lane::Outward, "push", sent)];
        let mut pull = vec![pair(Lane::Inward, "pull", sent)];
        if served > Bytes::ZERO {
            push.push(pair(Lane::Inward, "serve push", served));
            pull.push(pair(Lane::Outward, "serve pull", served));
        }
        chain.push(push);
        chain.push(vec![serve(draft, exchange, workers, load.shards)]);
        chain.push(pull);
    }
    if local > 1 {
        let scope = Scope::contiguous(local);
        let call = |kind| Call { kind, bytes: exchange.bytes, scope, method: None };
        if workers == 1 {
            return vec![vec![operation(draft, Lane::Local, call(exchange.kind))]];
        }
        let scatter = operation(draft, Lane::Local, call(CollectiveKind::ReduceScatter));
        let gather = operation(draft, Lane::Local, call(CollectiveKind::AllGather));
        chain.insert(0, vec![scatter]);
        chain.push(vec![gather]);
    }
    chain
}

/// Parts of a gradient on a NIC.
struct ServerLoad {
    /// What a worker's NIC sends as a worker.
    worker: f64,
    /// What it takes in as a server.
    server: f64,
    /// Over how many machines sums are spread.
    shards: f64,
}

impl ServerLoad {
    fn of(plan: ServerPlan, workers: u32) -> Self {
        let (n, k) = (f64::from(workers), f64::from(plan.own));
        if !plan.colocated {
            // A server's NIC takes n/k gradients in while a worker sends one.
            return Self { worker: (n / k.max(1.0)).max(1.0), server: 0.0, shards: k.max(1.0) };
        }
        let k = k.min(n);
        let share = (n - k) / (n * n + k * n - 2.0 * k);
        let server = ((n - 1.0) * share).max(0.0);
        Self { worker: 1.0 - share, server, shards: n + k }
    }
}

/// The sum on a server: of its shard over all workers, decoded and encoded again where encoded
/// gradients cannot be added.
fn serve(draft: &Draft<'_>, exchange: &Exchange, workers: u32, shards: f64) -> Part {
    let primitives = draft.costs.primitives();
    let raw = Bytes::new((exchange.bytes.as_f64() / shards).ceil() as u64);
    let sums = f64::from(workers.max(1) - 1);
    let mut time = primitives.aggregate.time(raw).map(|ns| ns * sums);
    if let Some(codec) = exchange.codec
        && !codec.scheme.sums_encoded()
        && let Some(cost) = primitives.codec.get(&codec.scheme)
    {
        let coded =
            cost.decode.ns(raw.as_f64()) * f64::from(workers) + cost.encode.ns(raw.as_f64());
        time = time.map(|ns| ns + coded);
    }
    sum(Lane::Servers, raw, time)
}
