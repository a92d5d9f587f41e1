//! One run of a program.

use foretrain_core::Nanos;
use foretrain_graph::QueueId;

use crate::contended;
use crate::deadlock;
use crate::error::SimError;
use crate::fast;
use crate::general;
use crate::noise::Noise;
use crate::options::{Discipline, Path, SimOptions};
use crate::ordered::{self, Order};
use crate::program::Program;
use crate::sharers::Sharers;
use crate::state::{Columns, Workspace};
use crate::timeline::{ClassTimeline, SteadyStep, Timeline};

/// What a run needs beyond the program, checked.
struct Setup<'a> {
    tasks: usize,
    iterations: usize,
    /// When each queue becomes free.
    free: Vec<i64>,
    noise: Option<Noise>,
    disciplines: Vec<Discipline>,
    sharers: Sharers<'a>,
    /// The order of all tasks, where it is known beforehand.
    order: Option<&'a Order>,
    /// Whether tasks run at full rate, first come first served.
    is_fast: bool,
    /// Iterations after which the run may end once they repeat.
    least: Option<usize>,
}

impl Program {
    /// Simulates the job.
    ///
    /// # Errors
    /// If an option is out of range, the run too large, or tasks wait for each other for ever.
    pub fn run(&self, options: &SimOptions) -> Result<Timeline, SimError> {
        self.run_in(options, &mut Workspace::default())
    }

    /// The same in given memory, which goes into the timeline.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_in(
        &self,
        options: &SimOptions,
        workspace: &mut Workspace,
    ) -> Result<Timeline, SimError> {
        let columns = self.columns(self.setup(options)?, workspace)?;
        let iterations = columns.end.len().checked_div(self.node_count());
        Ok(self.timeline(columns, iterations.unwrap_or(options.iterations as usize)))
    }

    /// Simulates the job and keeps only the time per step; the same as that of the timeline of
    /// [`run`](Self::run), and cheaper.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn steady_step(&self, options: &SimOptions) -> Result<SteadyStep, SimError> {
        self.steady_step_in(options, &mut Workspace::default())
    }

    /// The same in given memory.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn steady_step_in(
        &self,
        options: &SimOptions,
        workspace: &mut Workspace,
    ) -> Result<SteadyStep, SimError> {
        let setup = self.setup(options)?;
        if let Some(order) = setup.order.filter(|_| setup.sharers.is_empty()) {
            let columns = workspace.borrow();
            let ends = ordered::latest_ends(self, order, setup.iterations, &setup.free, columns);
            let finish: Vec<Nanos> = ends.into_iter().map(Nanos::from_nanos).collect();
            return Ok(SteadyStep::of(&finish));
        }
        let columns = self.columns(setup, workspace)?;
        let latest = |ends: &[i64]| ends.iter().copied().max().map(Nanos::from_nanos);
        let nodes = self.node_count().max(1);
        let finish: Vec<Nanos> = columns.end.chunks(nodes).filter_map(latest).collect();
        workspace.keep(columns);
        Ok(SteadyStep::of(&finish))
    }

    fn setup<'a>(&'a self, options: &'a SimOptions) -> Result<Setup<'a>, SimError> {
        options.check()?;
        if let Some((class, _)) =
            options.jitter.slow_classes.iter().find(|(class, _)| *class >= self.class_count())
        {
            let what = "a slow-down".to_owned();
            return Err(SimError::Dangling {
                what,
                class: *class,
                target: "that class".to_owned(),
            });
        }
        let tasks = self.tasks(options.iterations)?;
        let iterations = options.iterations as usize;
        let free = self.initial(options)?;
        let noise = Noise::new(self, iterations, &options.jitter);
        let disciplines = self.disciplines(options)?;
        let sharers = Sharers::new(self, options)?;
        let plain = disciplines.iter().all(|d| *d == Discipline::Fifo);
        let in_order = plain && noise.is_none() && options.path == Path::Auto;
        let order = self.order.as_deref();
        let order = order.filter(|order| in_order && order.holds_for(iterations));
        let is_fast = plain && sharers.is_empty() && options.path != Path::General;
        Ok(Setup {
            tasks,
            iterations,
            free,
            noise,
            disciplines,
            sharers,
            order,
            is_fast,
            least: options.until_repeats.map(|least| least as usize),
        })
    }

    fn columns(&self, setup: Setup<'_>, workspace: &mut Workspace) -> Result<Columns, SimError> {
        let Setup { tasks, iterations, free, noise, disciplines, sharers, order, is_fast, least } =
            setup;
        let (columns, finished) = match order {
            // Nothing waits in a circle where there is an order.
            Some(order) if sharers.is_empty() => {
                return Ok(ordered::run(self, order, iterations, &free, least, workspace.take()));
            }
            Some(order) => {
                return Ok(contended::run(
                    self,
                    order,
                    iterations,
                    &free,
                    sharers,
                    least,
                    workspace.take(),
                ));
            }
            None if is_fast => fast::run(self, iterations, free, noise),
            None => general::run(self, iterations, &free, noise, disciplines, sharers),
        };
        if finished < tasks as u64 {
            return Err(deadlock::explain(self, &columns, finished));
        }
        Ok(columns)
    }

    fn initial(&self, options: &SimOptions) -> Result<Vec<i64>, SimError> {
        let mut free = vec![0; self.queues.len()];
        for busy in &options.initial_busy {
            let queue = self.queue_of(busy.class, busy.queue, "an initially busy queue")?;
            free[queue] = busy.until.nanos().max(free[queue]);
        }
        Ok(free)
    }

    fn disciplines(&self, options: &SimOptions) -> Result<Vec<Discipline>, SimError> {
        let mut disciplines = vec![options.discipline; self.queues.len()];
        for one in &options.queue_disciplines {
            disciplines[self.queue_of(one.class, one.queue, "a discipline")?] = one.discipline;
        }
        Ok(disciplines)
    }

    fn queue_of(&self, class: usize, queue: QueueId, what: &str) -> Result<usize, SimError> {
        let range = self.first_queue.get(class).zip(self.first_queue.get(class + 1));
        match range {
            Some((from, to)) if from + queue.get() < *to => Ok((from + queue.get()) as usize),
            _ => Err(SimError::Dangling {
                what: what.to_owned(),
                class,
                target: format!("queue {}", queue.get()),
            }),
        }
    }

    fn timeline(&self, columns: Columns, iterations: usize) -> Timeline {
        let Columns { start, end, wait } = columns;
        let slots_are_rows = self.slot.iter().enumerate().all(|(row, &slot)| row == slot as usize);
        if slots_are_rows && self.class_count() == 1 {
            let whole = |column: Vec<i64>| column.into_iter().map(Nanos::from_nanos).collect();
            let class = class_timeline(self.node_count(), whole(start), whole(end), whole(wait));
            return Timeline { classes: vec![class], iterations };
        }
        let classes = (0..self.class_count()).map(|class| {
            let nodes = self.class_nodes(class);
            let slots = &self.slot[self.first[class] as usize..][..nodes];
            let pick = |column: &[i64]| -> Vec<Nanos> {
                let mut picked = Vec::with_capacity(nodes * iterations);
                for times in column.chunks(self.node_count().max(1)) {
                    picked
                        .extend(slots.iter().map(|&slot| Nanos::from_nanos(times[slot as usize])));
                }
                picked
            };
            class_timeline(nodes, pick(&start), pick(&end), pick(&wait))
        });
        Timeline { classes: classes.collect(), iterations }
    }
}

fn class_timeline(
    nodes: usize,
    start: Vec<Nanos>,
    end: Vec<Nanos>,
    wait: Vec<Nanos>,
) -> ClassTimeline {
    let latest = |ends: &[Nanos]| ends.iter().copied().max().unwrap_or(Nanos::ZERO);
    let iteration_end = end.chunks(nodes.max(1)).map(latest).collect();
    ClassTimeline { nodes, start, end, wait, iteration_end }
}
