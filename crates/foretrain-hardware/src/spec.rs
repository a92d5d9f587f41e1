//! Catalogue files as written: every figure optional, so that an entry may override single
//! figures of another one.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use foretrain_core::{Bandwidth, Bytes, FlopRate, Nanos};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use crate::collectives::CalibrationSpec;
use crate::device::DeviceKind;
use crate::node::{CpuVendor, LinkKind, NicKind};
use crate::quantity::{Count, Hertz, Ratio, Share, Text, UsdPerHour, Watts};

/// A TOML table that keeps the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ordered<T>(pub(crate) Vec<(String, T)>);

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = Ordered<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Ordered(entries))
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

/// One catalogue file.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct FileSpec {
    pub(crate) sources: Ordered<String>,
    pub(crate) devices: Ordered<DeviceSpec>,
    pub(crate) fabrics: Ordered<FabricSpec>,
    pub(crate) nodes: Ordered<NodeSpec>,
    pub(crate) clusters: Ordered<ClusterSpec>,
}

/// A section's entry: what inheritance and sources need to know of it.
pub(crate) trait Spec: Clone {
    /// The section's name in the file, "devices".
    const SECTION: &'static str;
    /// One of them, "device".
    const NOUN: &'static str;
    /// The keys that hold figures.
    const FIGURES: &'static [&'static str];
    fn based_on(&self) -> Option<&str>;
    /// Takes from `base` what is not set here. `same` says that this entry replaces `base`,
    /// which is when its other names carry over too.
    fn inherit(&mut self, base: &Self, same: bool);
    /// The keys of the figures that are set, with table entries as `peak.bf16`.
    fn set(&self) -> Vec<String>;
    fn source(&self) -> Option<&str>;
    fn sources(&self) -> &Sources;
    fn sources_mut(&mut self) -> &mut Sources;
}

/// Key of a figure -> where it comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sources(pub(crate) BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Sources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(Self)
    }
}

macro_rules! spec {
    ($(#[$doc:meta])* $name:ident, $section:literal, $noun:literal,
     figures { $($figure:ident: $figure_type:ty,)* }
     tables { $($table:ident: $table_type:ty,)* }
     names { $($names:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub(crate) struct $name {
            pub(crate) based_on: Option<String>,
            pub(crate) description: Option<String>,
            $(pub(crate) $names: Option<Vec<String>>,)*
            $(pub(crate) $figure: Option<$figure_type>,)*
            $(pub(crate) $table: Ordered<$table_type>,)*
            pub(crate) source: Option<String>,
            pub(crate) sources: Sources,
        }
        impl Spec for $name {
            const SECTION: &'static str = $section;
            const NOUN: &'static str = $noun;
            const FIGURES: &'static [&'static str] = &[$(stringify!($figure),)* $(stringify!($table),)*];
            fn based_on(&self) -> Option<&str> {
                self.based_on.as_deref()
            }
            fn inherit(&mut self, base: &Self, same: bool) {
                // A section without other names has nothing that depends on it.
                let _ = same;
                self.description = self.description.take().or_else(|| base.description.clone());
                $(if same && self.$names.is_none() {
                    self.$names.clone_from(&base.$names);
                })*
                $(if self.$figure.is_none() {
                    self.$figure.clone_from(&base.$figure);
                })*
                $(for (key, value) in &base.$table.0 {
                    if !self.$table.0.iter().any(|(own, _)| own == key) {
                        self.$table.0.push((key.clone(), value.clone()));
                    }
                })*
            }
            fn set(&self) -> Vec<String> {
                let mut keys = Vec::new();
                $(if self.$figure.is_some() {
                    keys.push(stringify!($figure).to_owned());
                })*
                $(for (key, _) in &self.$table.0 {
                    keys.push(format!("{}.{key}", stringify!($table)));
                })*
                keys
            }
            fn source(&self) -> Option<&str> {
                self.source.as_deref()
            }
            fn sources(&self) -> &Sources {
                &self.sources
            }
            fn sources_mut(&mut self) -> &mut Sources {
                &mut self.sources
            }
        }
    };
}

spec!(
    /// `[devices.NAME]`.
    DeviceSpec, "devices", "device",
    figures {
        kind: DeviceKind,
        vendor: String,
        architecture: String,
        compute_capability: String,
        multiprocessors: Count<1, 100_000>,
        memory: Text<Bytes>,
        memory_bandwidth: Text<Bandwidth>,
        l2_cache: Text<Bytes>,
        boost_clock: Text<Hertz>,
        tdp: Text<Watts>,
        max_pending_launches: Count<1, 1_000_000>,
    }
    tables {
        peak: Text<FlopRate>,
        peak_sparse: Text<FlopRate>,
    }
    names { aliases, products, }
);

spec!(
    /// `[nodes.NAME]`.
    NodeSpec, "nodes", "node",
    figures {
        device: String,
        devices: Count<1, 16_384>,
        hosts: Count<1, 4096>,
        intra: LinkKind,
        intra_generation: Count<1, 20>,
        intra_bandwidth: Text<Bandwidth>,
        intra_efficiency: Share,
        intra_latency: Text<Nanos>,
        links_per_device: Count<1, 1024>,
        nics: Count<0, 16_384>,
        nic: NicKind,
        nic_bandwidth: Text<Bandwidth>,
        nic_efficiency: Share,
        fabric: String,
        pcie_generation: Count<1, 8>,
        cpu: String,
        cpu_vendor: CpuVendor,
        host_memory: Text<Bytes>,
        power: Text<Watts>,
        price: Text<UsdPerHour>,
    }
    tables {}
    names { aliases, }
);

spec!(
    /// `[fabrics.NAME]`.
    FabricSpec, "fabrics", "fabric",
    figures {
        topology: TopologyKind,
        dimensions: Vec<Count<1, 65_536>>,
        rail_optimised: bool,
        in_network_reduction: bool,
        levels: Vec<LevelSpec>,
    }
    tables {}
    names {}
);

spec!(
    /// `[clusters.NAME]`.
    ClusterSpec, "clusters", "cluster",
    figures {
        node: String,
        nodes: Count<1, 1_000_000>,
        fabric: String,
        topology: TopologyKind,
        dimensions: Vec<Count<1, 65_536>>,
        rail_optimised: bool,
        in_network_reduction: bool,
        levels: Vec<LevelSpec>,
        collectives: CalibrationSpec,
    }
    tables {}
    names { aliases, }
);

/// How a fabric's levels are wired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TopologyKind {
    FatTree,
    Dragonfly,
    Torus,
}

/// One switching level of a fabric, nearest the nodes first.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LevelSpec {
    pub(crate) name: Option<String>,
    pub(crate) nodes: Option<Count<1, 1_000_000>>,
    pub(crate) oversubscription: Option<Ratio>,
    pub(crate) latency: Option<Text<Nanos>>,
}
