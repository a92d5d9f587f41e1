//! From one job to many: the row of a job in the feature table of a fleet, from its recording, its
//! graph or its model; and back ([`open`]): a row as a step that can be predicted elsewhere.
//!
//! A row holds what one step of one replica computes and moves (`foretrain_fleet::jobs::Features`),
//! every figure with what it rests on. What was not found is left empty and says why.

mod exchange;
mod figure;
mod graph;
mod model;
pub mod open;
mod operators;
mod recording;
mod respread;
mod row;
mod weights;

use foretrain_core::words::counted;
use foretrain_core::{InputError, Result};
use foretrain_fleet::jobs::Class;
use foretrain_graph::StepGraph;
use foretrain_hardware::Cluster;
use foretrain_plan::{Optimiser, Precision};

pub use figure::{Basis, Figure};
pub use model::of_model;
pub use recording::of_recordings;
pub use row::{Cell, JobFeatures, Origin, Value, to_csv};

use graph::Read;
use respread::respread;
use weights::Weights;

/// What is known of a job beside what it is read from.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// What identifies it.
    pub id: String,
    /// The model's name, where the subject does not have one.
    pub model: Option<String>,
    /// How it is spread.
    pub class: Option<Class>,
    /// GPUs that hold a replica each.
    pub cnodes: Option<u32>,
    /// GPUs of a server.
    pub gpus_per_server: u32,
    /// Samples of a replica's step.
    pub batch: Option<u64>,
    /// Tokens of a sample; of a pair, the source's.
    pub sequence: Option<u64>,
    /// Tokens of a pair's target.
    pub target: Option<u64>,
    /// What updates the parameters.
    pub optimiser: Optimiser,
    /// Number formats, of a described model.
    pub precision: Precision,
    /// Steps that it runs.
    pub steps: Option<u64>,
    /// Where a described model runs, for its step time and memory.
    pub on: Option<&'a Cluster>,
}

impl Asked<'_> {
    fn cnodes(&self, found: u32) -> Figure<u32> {
        match self.cnodes {
            Some(cnodes) => Figure::new(cnodes, Basis::Given, ""),
            None => Figure::new(found, Basis::Measured, "ranks of the job"),
        }
    }

    /// The row of what was read.
    ///
    /// # Errors
    /// If the class that was asked for does not have so many cNodes.
    fn row(&self, origin: Origin, read: Read) -> Result<JobFeatures> {
        let cnodes = self.cnodes(read.world_size);
        let class = self.class(&cnodes, read.replica_size);
        self.check(&class, &cnodes)?;
        let read = respread(read, &class, &cnodes);
        let Weights { gradients, dense, embedding, touched } =
            Weights::new(read.gradients, read.tables, self.optimiser);
        let source = origin.as_str();
        Ok(JobFeatures {
            id: self.id.clone(),
            origin,
            model: self.model.clone().unwrap_or_default(),
            class,
            cnodes,
            batch: self.batch(&format!("the {source} does not tell the batch: give --batch")),
            flops: read.flops,
            memory_access: read.memory_access,
            input: read.input,
            traffic: read.traffic,
            dense_weights: dense,
            embedding_weights: embedding,
            embedding_touched: touched,
            gradients,
            steps: self.steps(),
            step_time: read.step_time,
            utilisation: read.utilisation,
            gpu_memory: Figure::missing(format!(
                "the {source} does not tell what is kept in memory"
            )),
            notes: read.notes,
        })
    }

    /// Refuses what `fleet characterise` would: a class that does not have so many cNodes.
    fn check(&self, class: &Figure<Class>, cnodes: &Figure<u32>) -> Result<()> {
        let (Some(class), Some(cnodes)) = (class.value, cnodes.value) else { return Ok(()) };
        let name = class.name();
        let refusal = |rule: String, hint: &str| {
            let found = counted(cnodes, "cNode");
            Err(InputError::new(format!("{found} in class {name}, which {rule}")).hint(hint))
        };
        if class == Class::OneWorkerOneGpu && cnodes > 1 {
            return refusal("has one".into(), "give --cnodes 1, or another --class");
        }
        if cnodes < class.fewest() {
            let rule = format!("has {} or more", class.fewest());
            return refusal(rule, "give more --cnodes, or another --class");
        }
        if class.within_a_server() && cnodes > self.gpus_per_server {
            let rule = format!("is of one server of {} GPUs", self.gpus_per_server);
            return refusal(rule, "give fewer --cnodes, another --class, or --gpus-per-server");
        }
        Ok(())
    }

    fn batch(&self, why_not: &str) -> Figure<u64> {
        match self.batch {
            Some(batch) => Figure::new(batch, Basis::Given, "samples of a replica's step"),
            None => Figure::missing(why_not),
        }
    }

    fn steps(&self) -> Figure<u64> {
        match self.steps {
            Some(steps) => Figure::new(steps, Basis::Given, ""),
            None => Figure::missing("how long the job runs is not known: give --total-steps"),
        }
    }

    /// As given, else all-reduce within a server or among servers.
    fn class(&self, cnodes: &Figure<u32>, replica_size: u32) -> Figure<Class> {
        if let Some(class) = self.class {
            return Figure::new(class, Basis::Given, "");
        }
        let Some(cnodes) = cnodes.value else { return Figure::missing("the GPUs are not known") };
        if cnodes == 1 {
            return Figure::new(Class::OneWorkerOneGpu, Basis::Inferred, "one GPU");
        }
        let local = cnodes <= self.gpus_per_server;
        let class = if local { Class::AllReduceLocal } else { Class::AllReduceCluster };
        let parts = if replica_size > 1 { "; parts of a replica count as cNodes" } else { "" };
        let how = format!(
            "{cnodes} GPUs, of which a server holds {}: how they are spread is not known{parts}",
            self.gpus_per_server
        );
        Figure::new(class, Basis::Assumed, how)
    }
}

/// The row of a job of which step graphs are at hand, one per rank. The lowest rank stands for all.
///
/// # Errors
/// If there is no graph, or the class asked for does not have so many cNodes.
pub fn of_graphs(graphs: &[StepGraph], asked: &Asked<'_>) -> Result<JobFeatures> {
    let Some(graph) = graphs.iter().min_by_key(|graph| graph.meta.rank) else {
        return Err(InputError::new("no step graph given"));
    };
    let mut read = Read::of(graph);
    read.world_size = read.world_size.max(u32::try_from(graphs.len()).unwrap_or(u32::MAX));
    if graphs.len() > 1 {
        read.notes.push(format!("rank {} stands for all {}", graph.meta.rank, graphs.len()));
    }
    asked.row(Origin::Graph, read)
}
