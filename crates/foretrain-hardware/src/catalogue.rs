//! The catalogue: built-in entries, users' files over them, and look-up by name.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use foretrain_core::{InputError, Result, suggest};

use crate::book::{Book, fold};
use crate::cluster::Cluster;
use crate::device::Device;
use crate::node::Node;
use crate::quantity::shown;
use crate::read::{Fault, parse};
use crate::{build, product};

/// The built-in files, in the order in which they are read.
const BUILTIN: [(&str, &str); 4] = [
    ("sources.toml", include_str!("../data/sources.toml")),
    ("devices.toml", include_str!("../data/devices.toml")),
    ("nodes.toml", include_str!("../data/nodes.toml")),
    ("clusters.toml", include_str!("../data/clusters.toml")),
];

/// A catalogue file is a few kilobytes; a larger one is something else.
const LARGEST_FILE: u64 = 1 << 20;

/// Devices, nodes and clusters by name.
///
/// Entries keep the order in which they were defined: the built-in ones first, a user's after
/// them, and an entry that replaces another in its place.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    book: Book,
    devices: Named<Device>,
    nodes: Named<Node>,
    clusters: Named<Cluster>,
    // Every node type as a cluster, in the order of `nodes`.
    node_clusters: Vec<Cluster>,
}

#[derive(Clone, Debug)]
struct Named<T> {
    entries: Vec<T>,
    index: BTreeMap<String, usize>,
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), index: BTreeMap::new() }
    }
}

impl<T> Named<T> {
    fn at(&self, name: &str) -> Option<usize> {
        self.index.get(&fold(name)).copied()
    }
    fn get(&self, name: &str) -> Option<&T> {
        self.at(name).map(|at| &self.entries[at])
    }
}

impl Catalogue {
    /// The entries that come with the program. Clone it to load files over them.
    pub fn builtin() -> &'static Self {
        static BUILT: OnceLock<Catalogue> = OnceLock::new();
        BUILT.get_or_init(|| {
            // Only an edit of the embedded files can fail here, and then every test does.
            match Self::from_builtin_files() {
                Ok(catalogue) => catalogue,
                Err(error) => unreachable!("built-in catalogue: {error}"),
            }
        })
    }

    fn from_builtin_files() -> Result<Self> {
        let mut book = Book::default();
        for (name, text) in BUILTIN {
            let file = parse(text).map_err(|error| error.in_file(name))?;
            book.add(file).map_err(|fault| fault.into_error(text).in_file(name))?;
        }
        Self::default().rebuilt(book).map_err(|fault| fault.into_error(""))
    }

    /// Reads a catalogue file and adds its entries, overriding those of the same name. On error
    /// nothing changes.
    ///
    /// # Errors
    /// If the file cannot be read, is no TOML, or has an unknown key, a wrong unit, an impossible
    /// or missing figure, or a reference to nothing. The error names the key, its line and a way on.
    pub fn load_user_file(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let text = read_text(path)?;
        self.load_str(&text, path)
    }

    /// As [`load_user_file`](Self::load_user_file), for text at hand; `path` is for messages.
    ///
    /// # Errors
    /// As [`load_user_file`](Self::load_user_file).
    pub fn load_str(&mut self, text: &str, path: impl AsRef<Path>) -> Result<()> {
        let file = parse(text).map_err(|error| error.in_file(&path))?;
        let mut book = self.book.clone();
        let added = match book.add(file) {
            Ok(()) => self.rebuilt(book),
            Err(fault) => Err(fault),
        };
        *self = added.map_err(|fault| fault.into_error(text).in_file(path))?;
        Ok(())
    }

    /// All entries anew: one overridden device changes the nodes that hold it, and so on.
    fn rebuilt(&self, book: Book) -> Result<Self, Fault> {
        let known = &self.devices.entries;
        let mut new = Self::default();
        for (name, spec) in book.devices.iter() {
            new.devices.entries.push(build::device(&book, name, spec, known)?);
        }
        let names = new.devices.entries.iter().map(|d| (d.name.as_str(), &d.aliases[..]));
        new.devices.index = build::index("devices", names)?;
        for (name, spec) in book.nodes.iter() {
            let node = build::node(&book, name, spec, |wanted| new.devices.get(wanted).cloned())?;
            new.nodes.entries.push(node);
        }
        let names = new.nodes.entries.iter().map(|node| (node.name.as_str(), &node.aliases[..]));
        new.nodes.index = build::index("nodes", names)?;
        for node in &new.nodes.entries {
            new.node_clusters.push(build::cluster_of(&book, node)?);
        }
        for (name, spec) in book.clusters.iter() {
            let cluster = build::cluster(&book, name, spec, |node| new.nodes.get(node).cloned())?;
            new.clusters.entries.push(cluster);
        }
        let names = new.clusters.entries.iter().map(|c| (c.name.as_str(), &c.aliases[..]));
        new.clusters.index = build::index("clusters", names)?;
        new.book = book;
        Ok(new)
    }

    /// All devices.
    pub fn devices(&self) -> impl ExactSizeIterator<Item = &Device> {
        self.devices.entries.iter()
    }

    /// All node types.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &Node> {
        self.nodes.entries.iter()
    }

    /// The clusters of a known fabric. Node types are clusters too; see
    /// [`node_clusters`](Self::node_clusters).
    pub fn clusters(&self) -> impl ExactSizeIterator<Item = &Cluster> {
        self.clusters.entries.iter()
    }

    /// Every node type as a cluster with its default fabric.
    pub fn node_clusters(&self) -> impl ExactSizeIterator<Item = &Cluster> {
        self.node_clusters.iter()
    }

    /// The device of this name or alias; case and separators do not matter, and a driver's
    /// product name will do.
    ///
    /// # Errors
    /// If there is none; the error names the nearest.
    pub fn device(&self, name: &str) -> Result<&Device> {
        let found = self.devices.get(name).or_else(|| self.device_by_product_name(name));
        found.ok_or_else(|| unknown("device", name, self.devices().map(|d| d.name.as_str())))
    }

    /// The device that a driver, profiler or trace calls `product`; `None` if no entry fits or
    /// several do equally well.
    pub fn device_by_product_name(&self, product: &str) -> Option<&Device> {
        product::find(&self.devices.entries, product)
    }

    /// The node type of this name or alias (`dgx-a100`, `p4d.24xlarge`).
    ///
    /// # Errors
    /// If there is none; the error names the nearest.
    pub fn node(&self, name: &str) -> Result<&Node> {
        let found = self.nodes.get(name);
        found.ok_or_else(|| unknown("node", name, self.nodes().map(|node| node.name.as_str())))
    }

    /// The cluster of this name or alias, or the node type of this name as a cluster of as many
    /// nodes as asked.
    ///
    /// # Errors
    /// If there is none; the error names the nearest.
    pub fn cluster(&self, name: &str) -> Result<Cluster> {
        let of_nodes = || self.node_clusters.get(self.nodes.at(name)?);
        let found = self.clusters.get(name).or_else(of_nodes);
        let names = self.clusters().chain(self.node_clusters()).map(|c| c.name.as_str());
        found.cloned().ok_or_else(|| unknown("cluster", name, names))
    }
}

/// Reads a file of a user's of plausible size as UTF-8.
///
/// # Errors
/// If it is not there, no file, too large or no UTF-8.
pub fn read_text(path: &Path) -> Result<String> {
    let size = std::fs::metadata(path).map_err(|error| InputError::io(&error, path))?;
    if !size.is_file() {
        return Err(InputError::new("expected a file, found a directory or device").in_file(path));
    }
    if size.len() > LARGEST_FILE {
        let message = format!("a file of {} bytes; at most {LARGEST_FILE}", size.len());
        return Err(InputError::new(message).in_file(path).hint("is this the right file?"));
    }
    let bytes = std::fs::read(path).map_err(|error| InputError::io(&error, path))?;
    InputError::text_of(bytes).map_err(|error| error.in_file(path))
}

/// Names those that contain what was asked for ("a100"), else the nearest.
fn unknown<'a>(noun: &str, wrong: &str, names: impl Iterator<Item = &'a str>) -> InputError {
    const MOST: usize = 8;
    let names: Vec<&str> = names.collect();
    let wanted = fold(wrong);
    let holds = |name: &&&str| !wanted.is_empty() && fold(name).contains(&wanted);
    let several: Vec<&str> = names.iter().filter(holds).take(MOST).copied().collect();
    let error = InputError::new(format!("no {noun} {}", shown(wrong)));
    let error = match (several.len(), suggest::nearest(wrong, names.iter().copied())) {
        (2.., _) => error.hint(format!("did you mean one of {}?", several.join(", "))),
        (1, _) => error.hint(format!("did you mean `{}`?", several[0])),
        (_, Some(near)) => error.hint(format!("did you mean `{near}`?")),
        _ => error,
    };
    error.hint("`foretrain hardware list` shows all names")
}
