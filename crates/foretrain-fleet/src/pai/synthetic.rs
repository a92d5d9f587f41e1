//! A made-up population of jobs whose mixture has the shares that the study published.
//!
//! The raw trace of the study is not public. What is: means and shares of its population (29 % of
//! jobs and 81 % of cNodes are PS/Worker, 62 % of the cluster's time is communication, ...). Jobs
//! here are drawn so that these come out: first how a step splits into parts, then the features
//! that take these times on the base machine. Nothing that is *not* among the published figures may
//! be learnt from it, and every row says `synthetic`.

use std::fmt::Write as _;

use foretrain_core::stats::normal_from_uniform;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::characterise::SYNTHETIC;
use super::hardware::{Hardware, Resource};
use crate::jobs::{Class, Medium, TrafficCounts};

/// Jobs to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Population {
    /// How many.
    pub jobs: u64,
    /// Equal seeds give equal jobs.
    pub seed: u64,
}

/// The titles of the table.
const HEADER: &str = "job_id,source,class,cnodes,flops,memory_access_bytes,input_bytes,\
weight_traffic_bytes,traffic_counts,dense_weight_bytes,embedding_weight_bytes,\
embedding_touched_bytes\n";

/// Share of jobs by class. All-reduce and PEARL are below 1 % together.
const SHARES: [(Class, f64); 6] = [
    (Class::OneWorkerOneGpu, 0.58),
    (Class::OneWorkerManyGpus, 0.12),
    (Class::PsWorker, 0.29),
    (Class::AllReduceLocal, 0.004),
    (Class::AllReduceCluster, 0.003),
    (Class::Pearl, 0.003),
];

/// Part of PS/Worker jobs whose embeddings fit no GPU.
const TOO_LARGE: f64 = 0.22;

impl Population {
    /// The table as CSV.
    pub fn csv(&self) -> String {
        let mut draw = Draw(Pcg64Mcg::seed_from_u64(self.seed));
        let mut text = HEADER.to_owned();
        for job in 0..self.jobs {
            row(job, &mut draw, &mut text);
        }
        text
    }
}

/// How a step splits: input, compute-bound, memory-bound, traffic.
type Split = [f64; 4];

fn row(job: u64, draw: &mut Draw, text: &mut String) {
    let class = draw.class();
    let (cnodes, split) = match class {
        Class::OneWorkerOneGpu => (1, one_gpu(draw)),
        Class::PsWorker => ps_worker(draw),
        Class::OneWorkerManyGpus => (draw.among(&[2, 2, 2, 4, 4, 8]), one_worker(draw)),
        Class::AllReduceCluster => (draw.among(&[16, 16, 32]), reduced(draw)),
        Class::AllReduceLocal | Class::Pearl => (draw.among(&[4, 8, 8]), reduced(draw)),
    };
    let seconds = 0.3 * draw.normal().exp();
    let [input, flops, memory, traffic] = split.map(|share| share * seconds);
    let base = Hardware::pai_2019();
    let per_byte: f64 = class
        .media()
        .iter()
        .map(|medium| match medium {
            Medium::Ethernet => Resource::Ethernet,
            Medium::Pcie => Resource::Pcie,
            Medium::NvLink => Resource::NvLink,
        })
        .map(|resource| 1.0 / base.reached(resource))
        .sum();
    let traffic = if per_byte > 0.0 { traffic / per_byte } else { 0.0 };
    let dense = (50e6 * (1.5 * draw.normal()).exp()).min(3e9);
    let too_large = class == Class::PsWorker && draw.uniform() < TOO_LARGE;
    let embedding = match class {
        // Kept whole on no GPU, in parts on eight.
        Class::Pearl => 20e9 + 40e9 * draw.uniform(),
        _ if too_large => 20e9 * 15_f64.powf(draw.uniform()),
        _ => (500e6 * (1.5 * draw.normal()).exp()).min(12e9),
    };
    let touched = embedding.min(0.2 * traffic);
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "{SYNTHETIC}-{job},{SYNTHETIC},{},{cnodes},{:.0},{:.0},{:.0},{traffic:.0},{},{dense:.0},{embedding:.0},{touched:.0}",
        class.name(),
        flops * base.reached(Resource::Flops),
        memory * base.reached(Resource::Memory),
        input * base.reached(Resource::Pcie),
        TrafficCounts::SentAndReceived.name(),
    );
}

/// A few read more than they compute; memory-bound operations outweigh the others.
fn one_gpu(draw: &mut Draw) -> Split {
    let input = match draw.uniform() < 0.055 {
        true => 0.5 + 0.45 * draw.uniform(),
        false => 0.5 * draw.bent(0.9, 6.0),
    };
    let compute = 1.0 - input;
    let memory = compute * draw.bent(3.0, 2.2);
    [input, compute - memory, memory, 0.0]
}

fn one_worker(draw: &mut Draw) -> Split {
    let traffic = 0.25 + 0.6 * draw.bent(2.0, 2.0);
    let input = (1.0 - traffic) * 0.3 * draw.bent(1.0, 3.0);
    rest(input, traffic, draw)
}

/// Half of the jobs do little but communicate, and those tend to be the larger ones.
fn ps_worker(draw: &mut Draw) -> (u32, Split) {
    let size = draw.normal();
    let cnodes = 2 + (1.208 + 1.7 * size).exp().min(1_022.0) as u32;
    let correlated: f64 = 0.3;
    let heavy = correlated * size + (1.0 - correlated * correlated).sqrt() * draw.normal() > 0.0;
    let traffic = match heavy {
        true => 0.82 + 0.17 * draw.bent(2.0, 1.5),
        false => 0.8 * draw.bent(1.2, 1.9),
    };
    let waiting = -draw.uniform().max(1e-12).ln();
    let input = (0.03 * waiting * (1.0 - traffic) / 0.38).min(0.9 * (1.0 - traffic));
    (cnodes, rest(input, traffic, draw))
}

fn reduced(draw: &mut Draw) -> Split {
    let traffic = 0.4 * draw.bent(1.5, 2.0);
    let input = 0.05 * draw.uniform();
    rest(input, traffic, draw)
}

/// What is neither input nor traffic is computation, most of it bound by memory.
fn rest(input: f64, traffic: f64, draw: &mut Draw) -> Split {
    let compute = 1.0 - traffic - input;
    let memory = compute * draw.bent(3.0, 2.5);
    [input, compute - memory, memory, traffic]
}

struct Draw(Pcg64Mcg);

impl Draw {
    fn uniform(&mut self) -> f64 {
        self.0.random()
    }

    fn normal(&mut self) -> f64 {
        normal_from_uniform(self.uniform(), self.uniform())
    }

    /// Between 0 and 1, with the distribution of Kumaraswamy: as the beta distribution, but drawn in
    /// one line.
    fn bent(&mut self, a: f64, b: f64) -> f64 {
        (1.0 - (1.0 - self.uniform()).powf(1.0 / b)).powf(1.0 / a)
    }

    fn among(&mut self, values: &[u32]) -> u32 {
        values[((self.uniform() * values.len() as f64) as usize).min(values.len() - 1)]
    }

    fn class(&mut self) -> Class {
        let mut left = self.uniform();
        for (class, share) in SHARES {
            if left < share {
                return class;
            }
            left -= share;
        }
        Class::OneWorkerOneGpu
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_tables_that_say_what_they_are() {
        let table = Population { jobs: 50, seed: 7 }.csv();
        assert_eq!(table, Population { jobs: 50, seed: 7 }.csv());
        assert_ne!(table, Population { jobs: 50, seed: 8 }.csv());
        assert_eq!(table.lines().count(), 51);
        assert!(table.lines().skip(1).all(|line| line.contains(",synthetic,")));
    }
}
