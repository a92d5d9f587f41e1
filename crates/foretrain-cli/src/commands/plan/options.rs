//! Options that say nothing of what is planned: each is refused with the reason.

use foretrain::core::InputError;

use crate::failure::Result;

/// What a command line of `plan` is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Planning a described model.
    Model,
    /// Writing scenarios of a described model.
    Writing,
    /// Planning from a recording.
    Recording,
    /// Making the plans of scenarios.
    Scenarios,
    /// Putting the rows of scenarios together.
    Rows,
}

/// Refuses the first of the given options that is of no use.
pub(super) fn refuse(purpose: Purpose, given: &[String]) -> Result<()> {
    let why = |option: &str| match purpose {
        Purpose::Model => of_no_use_to_a_model(option),
        Purpose::Writing => of_no_use_to_writing(option),
        Purpose::Recording => of_no_use_to_a_recording(option),
        Purpose::Scenarios => of_no_use_to_scenarios(option),
        Purpose::Rows => of_no_use_to_rows(option),
    };
    let Some((option, hint)) = given.iter().find_map(|name| Some((name, why(name)?))) else {
        return Ok(());
    };
    let what = match purpose {
        Purpose::Model => "the description of a model",
        Purpose::Writing => "writing scenarios",
        Purpose::Recording => "a recording",
        Purpose::Scenarios => "scenarios",
        Purpose::Rows => "rows of scenarios",
    };
    Err(InputError::new(format!("--{option} is of no use to {what}")).hint(hint).into())
}

fn of_no_use_to_a_model(option: &str) -> Option<&'static str> {
    Some(match option {
        "strategy" => "the layouts hold how replicas are synchronised: --pin zero=1 makes a choice",
        "replica-batch" => "--batch says the samples of a step",
        "recorded-on" | "step-time" | "gradient-bytes" | "role" | "strict" | "steps" | "ranks"
        | "window" | "no-python" | "memory-cap" => "it says how a recording is read",
        "shard" | "merge" => OF_SCENARIOS,
        _ => return None,
    })
}

const OF_SCENARIOS: &str = "it is of a file of scenarios: plan --scenarios FILE, which \
                            --write-scenarios writes";

fn of_no_use_to_writing(option: &str) -> Option<&'static str> {
    Some(match option {
        "kernels" => "they hold no measurements; give it where they are run: plan --scenarios",
        "measured" => "they hold no measurements; plan with it one by one",
        "tokens" | "by" => "a row says what a million tokens cost, not when so many are done",
        "top" | "explain" => "a row holds the best layout; plan one by one to see others",
        "json" | "out" => "they go to the file of --write-scenarios, as JSON",
        _ => return of_no_use_to_a_model(option),
    })
}

fn of_no_use_to_a_recording(option: &str) -> Option<&'static str> {
    Some(match option {
        "batch" => {
            "each replica keeps its recorded batch; --replica-batch says how many samples it is"
        }
        "sequence" | "target-sequence" | "lora" | "expert-imbalance" | "optimizer" => {
            "it is as recorded; name a model to plan with another"
        }
        "precision" => {
            "it is as recorded; foretrain whatif --change precision=bf16 asks for another"
        }
        "software"
        | "overlap-tensor"
        | "no-overlap-gradients"
        | "attention"
        | "unbalanced-context"
        | "cuda-graphs"
        | "reduce-in" => "what ran the step is as recorded; foretrain whatif changes parts of it",
        "bucket" => "write it as a strategy: --strategy 'copies | fuse(25MiB)'",
        "pin" | "schedules" => {
            "the division of the model is as recorded; --strategy says what is tried"
        }
        "memory" => "the recording does not tell what is kept in memory",
        "tokens" | "by" => {
            "the recording does not tell tokens; with --replica-batch the answer has samples/s"
        }
        "kernels" | "measured" => "the recording holds the measured times itself",
        "write-scenarios" => "scenarios are of described models",
        "shard" | "merge" => OF_SCENARIOS,
        _ => return None,
    })
}

/// All but a few: an option that is new is refused until it is said what it does to scenarios.
fn of_no_use_to_scenarios(option: &str) -> Option<&'static str> {
    Some(match option {
        "scenarios" | "shard" | "merge" | "kernels" | "hardware" | "out" | "no-progress"
        | "color" => return None,
        "measured" => {
            "each has a job of its own: plan with it one by one, or give measured kernels: --kernels"
        }
        "json" => "rows are JSON lines as they are; --out rows.parquet makes a table",
        "tokens" | "by" | "top" | "explain" => return of_no_use_to_writing(option),
        "strategy" | "replica-batch" | "recorded-on" | "step-time" | "gradient-bytes" | "role"
        | "strict" | "steps" | "ranks" | "window" | "no-python" | "memory-cap" => {
            "scenarios are of described models, not of recordings"
        }
        _ => "each says its own; write them with it: plan MODEL ... --write-scenarios FILE",
    })
}

fn of_no_use_to_rows(option: &str) -> Option<&'static str> {
    match option {
        "kernels" | "hardware" => Some("nothing is planned; give it where the rows are made"),
        _ => of_no_use_to_scenarios(option),
    }
}
