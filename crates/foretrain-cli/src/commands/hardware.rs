//! `foretrain hardware`.

use std::path::PathBuf;

use foretrain::core::InputError;
use foretrain::hardware::Catalogue;
use foretrain::report::json::{self, HardwareReport};
use foretrain::report::text;

use super::Answer;
use crate::failure::Result;
use crate::output::Output;

/// What to show of the catalogue.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) action: Action,
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug)]
pub(crate) enum Action {
    List(Listed),
    Show(String),
}

/// Kinds of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listed {
    All,
    Devices,
    Nodes,
    Clusters,
}

impl Listed {
    fn holds(self, kind: Self) -> bool {
        self == Self::All || self == kind
    }
}

/// The built-in catalogue with a user's files over it.
pub(crate) fn catalogue(files: &[PathBuf]) -> Result<Catalogue> {
    let mut catalogue = Catalogue::builtin().clone();
    for file in files {
        catalogue.load_user_file(file)?;
    }
    Ok(catalogue)
}

pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    let mut catalogue = catalogue(&options.files)?;
    match &options.action {
        Action::List(listed) => list(&catalogue, *listed, output)?,
        Action::Show(name) => show(&mut catalogue, name, output)?,
    }
    Ok(Answer::Yes)
}

fn list(catalogue: &Catalogue, listed: Listed, output: &Output<'_>) -> Result<()> {
    let devices = || listed.holds(Listed::Devices).then(|| catalogue.devices());
    let nodes = || listed.holds(Listed::Nodes).then(|| catalogue.nodes());
    let clusters = || listed.holds(Listed::Clusters).then(|| catalogue.clusters());
    let document = || {
        json::to_text(&HardwareReport::new(
            devices().into_iter().flatten(),
            nodes().into_iter().flatten(),
            clusters().into_iter().flatten(),
        ))
    };
    let page = |style| {
        let pages = [
            devices().map(|devices| text::hardware_devices(devices, style)),
            nodes().map(|nodes| text::hardware_nodes(nodes, style)),
            clusters().map(|clusters| text::hardware_clusters(clusters, style)),
        ];
        let pages: Vec<String> = pages.into_iter().flatten().collect();
        pages.join("\n")
    };
    output.give(document, page)
}

/// The entry of this name or file: a cluster or node type before a device.
fn show(catalogue: &mut Catalogue, name: &str, output: &Output<'_>) -> Result<()> {
    match catalogue.cluster_or_file(name) {
        Ok(cluster) => {
            return output.give(
                || json::to_text(&HardwareReport::new([], [&cluster.node], [&cluster])),
                |style| text::hardware_cluster(&cluster, style),
            );
        }
        // What is wrong with a file must be said; a name may still be a device's.
        Err(error) if error.path().is_some() => return Err(error.into()),
        Err(_) => {}
    }
    match catalogue.device(name) {
        Ok(device) => output.give(
            || json::to_text(&HardwareReport::new([device], [], [])),
            |style| text::hardware_device(device, style),
        ),
        Err(_) => Err(unknown(catalogue, name).into()),
    }
}

/// No entry of any kind has this name.
fn unknown(catalogue: &Catalogue, name: &str) -> InputError {
    let error = InputError::new(format!("no device, node type or cluster {name:?}"));
    let hints = [catalogue.cluster(name).err(), catalogue.device(name).err()];
    let hints: Vec<String> =
        hints.iter().flatten().flat_map(|error| error.hints().iter().cloned()).collect();
    // The general hint of both comes once and last.
    let (meant, general): (Vec<String>, Vec<String>) =
        hints.into_iter().partition(|hint| hint.starts_with("did you mean"));
    meant.into_iter().chain(general).fold(error, InputError::hint)
}
