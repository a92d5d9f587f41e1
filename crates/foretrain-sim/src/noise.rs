//! Draws of one run.
//!
//! Every draw has its own generator, seeded from the run's seed and from what is drawn (class,
//! node, iteration). So a draw depends neither on the order of events nor on other nodes, and two
//! runs that differ in one place share all other draws.
//!
//! One instance stands for the `m` ranks of a class. It is a typical rank: each task draws its
//! own noise. When it meets others, the latest of the `m - 1` ranks it stands for counts too. To
//! know how late that is, each task carries what has piled up since the last meeting along the
//! chain of tasks that decided its time: the instance's own deviation, the variance and the work.
//! The latest of n independent normal values is drawn exactly: the quantile at `U^(1/n)`.

use foretrain_core::stats::normal_quantile;
use rand::Rng;
use rand_pcg::Pcg64Mcg;

use crate::jitter::{Jitter, Stragglers};
use crate::program::{NONE, Program};

/// Kinds of draws, so that equal indices give different values.
#[derive(Clone, Copy)]
enum Draw {
    Work = 1,
    Straggler = 2,
    Latest = 3,
    OtherStragglers = 4,
}

/// What has piled up since the ranks last met, ns (variance ns^2).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Pile {
    variance: f64,
    deviation: f64,
    work: f64,
}

impl Pile {
    /// Ties between equally late predecessors go to the more uncertain one. Every field counts, so
    /// that the order in which they are looked at never does.
    fn outranks(&self, other: &Pile) -> bool {
        let order = self.variance.total_cmp(&other.variance);
        let order = order.then(self.deviation.total_cmp(&other.deviation));
        order.then(self.work.total_cmp(&other.work)).is_gt()
    }
}

/// The draws of one run.
pub(crate) struct Noise {
    seed: u64,
    stragglers: Option<Stragglers>,
    /// Work of each task, drawn.
    work: Vec<i64>,
    /// Of each task by itself.
    own: Vec<Pile>,
    /// Up to the end of each task; empty if no class has more than one rank.
    piles: Vec<Pile>,
    /// Per slot: class, node id, and how many other ranks of its class it meets.
    keys: Vec<(u32, u32, u64)>,
}

impl Noise {
    /// `None` if the options ask for no variation.
    pub(crate) fn new(program: &Program, iterations: usize, jitter: &Jitter) -> Option<Self> {
        let stragglers = jitter.stragglers.filter(|s| s.probability > 0.0 && s.factor != 1.0);
        let spread =
            jitter.spread > 0.0 || (jitter.recorded_spread > 0.0 && !program.spread.is_empty());
        let slow = jitter.slow_classes.iter().any(|(_, factor)| *factor != 1.0);
        if !spread && !slow && stragglers.is_none() {
            return None;
        }
        let mut noise = Self {
            seed: jitter.seed,
            stragglers,
            work: Vec::with_capacity(program.node_count() * iterations),
            own: Vec::new(),
            piles: Vec::new(),
            keys: keys(program),
        };
        let track = program.multiplicity.iter().any(|&m| m > 1);
        for iteration in 0..iterations {
            noise.draw_iteration(program, iteration, jitter, track);
        }
        noise.piles = vec![Pile::default(); noise.own.len()];
        Some(noise)
    }

    fn draw_iteration(
        &mut self,
        program: &Program,
        iteration: usize,
        jitter: &Jitter,
        track: bool,
    ) {
        let slow: Vec<f64> = (0..program.class_count())
            .map(|class| {
                let factors = jitter.slow_classes.iter().filter(|(slow, _)| *slow == class);
                factors.map(|(_, factor)| factor).product()
            })
            .collect();
        let straggle: Vec<f64> =
            (0..program.class_count()).map(|class| self.straggle(class, iteration)).collect();
        for slot in 0..program.node_count() {
            let class = program.class[slot] as usize;
            let meeting = program.meetings.of[slot];
            let (nominal, factor, key) = if meeting == NONE {
                (program.work[slot] as f64 * slow[class], straggle[class], slot)
            } else {
                // A transfer is one event for all members: they share the draw.
                let first = program.meetings.members(meeting as usize)[0];
                (program.work[slot] as f64, 1.0, first as usize)
            };
            let recorded = program.spread.get(slot).map(|s| s * jitter.recorded_spread);
            let spread = recorded.filter(|s| *s > 0.0).unwrap_or(jitter.spread);
            let z = if spread > 0.0 && nominal > 0.0 {
                let (class, node, _) = self.keys[key];
                self.normal(Draw::Work, class, node, iteration)
            } else {
                0.0
            };
            let drawn = (nominal * factor * (1.0 + spread * z).max(0.0)).round();
            self.work.push(drawn as i64);
            if track {
                let variance = (nominal * spread).powi(2);
                self.own.push(Pile { variance, deviation: drawn - nominal, work: nominal });
            }
        }
    }

    fn straggle(&self, class: usize, iteration: usize) -> f64 {
        let Some(stragglers) = self.stragglers else { return 1.0 };
        let u = uniform(&mut self.generator(Draw::Straggler, class as u32, 0, iteration));
        if u < stragglers.probability { stragglers.factor } else { 1.0 }
    }

    /// Work of a task, ns.
    pub(crate) fn work(&self, task: usize) -> i64 {
        self.work[task]
    }

    /// `target` waits for `source`, which is later than (or, if `tie`, as late as) all before.
    pub(crate) fn follow(&mut self, source: usize, target: usize, tie: bool) {
        if self.piles.is_empty() {
            return;
        }
        let pile = self.piles[source];
        if !tie || pile.outranks(&self.piles[target]) {
            self.piles[target] = pile;
        }
    }

    /// A task starts that was ready at `ready` on a queue free at `free`, after task `last`.
    pub(crate) fn begin(&mut self, task: usize, ready: i64, free: i64, last: u32) {
        if self.piles.is_empty() {
            return;
        }
        if last != NONE && free >= ready {
            self.follow(last as usize, task, free == ready);
        }
        let (pile, own) = (&mut self.piles[task], self.own[task]);
        pile.variance += own.variance;
        pile.deviation += own.deviation;
        pile.work += own.work;
    }

    /// How much later than this instance the latest rank that it stands for arrives, ns. Resets
    /// what has piled up.
    pub(crate) fn excess(&mut self, task: usize, slot: usize, nodes: usize) -> i64 {
        if self.piles.is_empty() {
            return 0;
        }
        let (own, pile) = (self.own[task], std::mem::take(&mut self.piles[task]));
        let others = self.keys[slot].2;
        if others == 0 {
            return 0;
        }
        // What piled up before the meeting; the transfer is no part of it.
        let deviation = pile.deviation - own.deviation;
        let sigma = (pile.variance - own.variance).max(0.0).sqrt();
        let late = self.latest(task / nodes, slot, others, sigma, pile.work - own.work);
        (late - deviation).max(0.0).round() as i64
    }

    /// The deviation of the latest of `others` ranks.
    fn latest(&self, iteration: usize, slot: usize, others: u64, sigma: f64, work: f64) -> f64 {
        let (class, node, _) = self.keys[slot];
        let mut generator = self.generator(Draw::Latest, class, node, iteration);
        let (first, second) = (uniform(&mut generator), uniform(&mut generator));
        let Some(stragglers) = self.stragglers else { return sigma * latest_of(others, first) };
        let mut counter = self.generator(Draw::OtherStragglers, class, 0, iteration);
        let slow = binomial(others, stragglers.probability, &mut counter);
        let mut latest = f64::NEG_INFINITY;
        if slow < others {
            latest = sigma * latest_of(others - slow, first);
        }
        if slow > 0 {
            let base = (stragglers.factor - 1.0) * work;
            latest = latest.max(base + stragglers.factor * sigma * latest_of(slow, second));
        }
        latest
    }

    fn normal(&self, draw: Draw, class: u32, node: u32, iteration: usize) -> f64 {
        normal_quantile(uniform(&mut self.generator(draw, class, node, iteration)))
    }

    fn generator(&self, draw: Draw, class: u32, node: u32, iteration: usize) -> Pcg64Mcg {
        let low = mix(self.seed ^ mix((u64::from(class) << 32) | u64::from(node)));
        let high = mix(low ^ mix(((iteration as u64) << 8) | draw as u64));
        Pcg64Mcg::new((u128::from(high) << 64) | u128::from(mix(high ^ low)))
    }
}

fn keys(program: &Program) -> Vec<(u32, u32, u64)> {
    let mut keys: Vec<_> = (0..program.node_count())
        .map(|slot| {
            let (class, node) = program.node_of(slot);
            (class as u32, node.get(), 0)
        })
        .collect();
    for meeting in 0..program.meetings.len() {
        let parties = program.meetings.parties(meeting);
        for (&member, &party) in program.meetings.members(meeting).iter().zip(parties) {
            keys[member as usize].2 = party.saturating_sub(1);
        }
    }
    keys
}

/// The finaliser of SplitMix64: every input bit moves every output bit.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Uniform strictly between 0 and 1.
fn uniform(generator: &mut Pcg64Mcg) -> f64 {
    ((generator.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// The largest of `n` standard normal values, from a uniform one: the quantile at `u^(1/n)`.
fn latest_of(n: u64, u: f64) -> f64 {
    // 1 - u^(1/n), which keeps its precision where u^(1/n) is close to 1.
    let complement = -(u.ln() / n as f64).exp_m1();
    -normal_quantile(complement)
}

/// The number of successes in `n` trials: exact by counting gaps between successes while these
/// are few, else by the normal approximation.
fn binomial(n: u64, p: f64, generator: &mut Pcg64Mcg) -> u64 {
    const FEW: f64 = 1000.0;
    let mean = n as f64 * p;
    if p >= 1.0 {
        return n;
    }
    if mean > FEW {
        let z = normal_quantile(uniform(generator));
        return (mean + z * (mean * (1.0 - p)).sqrt()).round().clamp(0.0, n as f64) as u64;
    }
    let (mut at, mut count) = (0.0, 0);
    loop {
        at += (uniform(generator).ln() / (-p).ln_1p()).floor() + 1.0;
        if at > n as f64 {
            return count;
        }
        count += 1;
    }
}
