//! What-ifs: links, NICs and switches that are slow or dead.

use std::fmt;
use std::str::FromStr;

use foretrain_core::{InputError, Result, suggest};

use super::network::{Network, Nic};

/// Which part of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// All NICs of a node.
    Node(u32),
    /// One NIC, both directions.
    Nic(Nic),
    /// What connects a device with its node, both directions.
    Device {
        /// Its node.
        node: u32,
        /// Its number within the node.
        device: u32,
    },
    /// The cable between two switches, both directions.
    Cable(String, String),
    /// Every cable and NIC of a switch.
    Switch(String),
}

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    /// It carries this share of its rate, above 0 and at most 1.
    Rate(f64),
    /// It carries nothing.
    Down,
}

/// One what-if, written `node=3,nic=1,rate=0.5`, `node=3,down`, `node=0,device=2,rate=0.5`,
/// `link=leaf2-spine0,down` or `switch=spine0,down`.
#[derive(Clone, Debug, PartialEq)]
pub struct Degradation {
    /// What it is about.
    pub target: Target,
    /// How bad it is.
    pub condition: Condition,
}

const FORMS: &str = "write `node=3,nic=1,rate=0.5`, `node=0,device=2,rate=0.5`, `link=leaf2-spine0,down` or `switch=spine0,down`";

impl FromStr for Degradation {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |what: String| {
            InputError::new(format!("{what} in the degradation `{text}`")).hint(FORMS)
        };
        let mut condition = None;
        let mut keys: [(&str, Option<&str>); 5] =
            ["node", "nic", "device", "link", "switch"].map(|key| (key, None));
        for part in text.split(',').map(str::trim) {
            let (key, value) = match part.split_once('=') {
                Some((key, value)) => (key.trim(), Some(value.trim())),
                None => (part, None),
            };
            match (key, value) {
                ("down", None) | ("rate", Some(_)) if condition.is_some() => {
                    return Err(wrong("a second rate or `down`".into()));
                }
                ("down", None) => condition = Some(Condition::Down),
                ("rate", Some(value)) => {
                    let rate = value.parse::<f64>().ok().filter(|r| *r > 0.0 && *r <= 1.0);
                    let Some(rate) = rate else {
                        return Err(wrong(format!(
                            "expected a rate above 0 and at most 1, found `{value}`"
                        )));
                    };
                    condition = Some(Condition::Rate(rate));
                }
                _ => match (keys.iter_mut().find(|(known, _)| *known == key), value) {
                    (Some((_, slot @ None)), Some(value)) => *slot = Some(value),
                    (Some(_), Some(_)) => return Err(wrong(format!("`{key}` stands twice"))),
                    _ => return Err(wrong(format!("`{part}` is not understood"))),
                },
            }
        }
        let Some(condition) = condition else {
            return Err(wrong("neither `rate=` nor `down`".into()));
        };
        let number = |value: &str| match value.parse::<u32>() {
            Ok(number) => Ok(number),
            Err(_) => Err(wrong(format!("expected a number, found `{value}`"))),
        };
        let target = match keys.map(|(_, value)| value) {
            [Some(node), None, None, None, None] => Target::Node(number(node)?),
            [Some(node), Some(nic), None, None, None] => {
                Target::Nic(Nic { node: number(node)?, nic: number(nic)? })
            }
            [Some(node), None, Some(device), None, None] => {
                Target::Device { node: number(node)?, device: number(device)? }
            }
            [None, None, None, Some(link), None] => match link.split_once('-') {
                Some((a, b)) => Target::Cable(a.into(), b.into()),
                None => return Err(wrong(format!("a link has two ends, found `{link}`"))),
            },
            [None, None, None, None, Some(switch)] => Target::Switch(switch.into()),
            _ => {
                return Err(wrong(
                    "expected one of node, node and nic, node and device, link, switch".into(),
                ));
            }
        };
        Ok(Self { target, condition })
    }
}

impl fmt::Display for Degradation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            Target::Node(node) => write!(f, "node={node}")?,
            Target::Nic(Nic { node, nic }) => write!(f, "node={node},nic={nic}")?,
            Target::Device { node, device } => write!(f, "node={node},device={device}")?,
            Target::Cable(a, b) => write!(f, "link={a}-{b}")?,
            Target::Switch(name) => write!(f, "switch={name}")?,
        }
        match self.condition {
            Condition::Rate(rate) => write!(f, ",rate={rate}"),
            Condition::Down => f.write_str(",down"),
        }
    }
}

impl Network {
    /// Makes part of the network slow or dead. Of several what-ifs about one link the last counts.
    ///
    /// # Errors
    /// If the network has no such part; the error says what there is.
    pub fn degrade(&mut self, what: &Degradation) -> Result<()> {
        let share = match what.condition {
            Condition::Rate(rate) => rate,
            Condition::Down => 0.0,
        };
        for link in self.links_of(&what.target).map_err(|error| error.at(format!("`{what}`")))? {
            self.set_capacity(link, share);
        }
        Ok(())
    }

    fn links_of(&self, target: &Target) -> Result<Vec<u32>> {
        match target {
            Target::Node(node) => {
                below(*node, self.nodes, "node")?;
                let nics = (0..self.nics).map(|nic| Nic { node: *node, nic });
                Ok(nics.flat_map(|nic| [self.nic_up(nic), self.nic_down(nic)]).collect())
            }
            Target::Nic(nic) => {
                below(nic.node, self.nodes, "node")?;
                below(nic.nic, self.nics, "NIC")?;
                Ok(vec![self.nic_up(*nic), self.nic_down(*nic)])
            }
            Target::Device { node, device } => {
                below(*node, self.nodes, "node")?;
                below(*device, self.devices, "device")?;
                let others = (0..self.devices).filter(|other| other != device);
                let mut links: Vec<u32> = others
                    .flat_map(|other| {
                        let [out, _] = self.within(*node, *device, other);
                        let [first, last] = self.within(*node, other, *device);
                        [out, last.or(first)]
                    })
                    .flatten()
                    .collect();
                links.sort_unstable();
                links.dedup();
                Ok(links)
            }
            Target::Cable(a, b) => {
                let (from, to) = (self.switch_named(a)?, self.switch_named(b)?);
                let cables = self.ports(from).iter().filter(|port| port.to == to);
                let links: Vec<u32> =
                    cables.flat_map(|port| [port.link, self.reverse(port.link)]).collect();
                if links.is_empty() {
                    let around: Vec<&str> = self
                        .ports(from)
                        .iter()
                        .take(6)
                        .map(|p| self.switches()[p.to as usize].as_str())
                        .collect();
                    return Err(InputError::new(format!("no cable between {a} and {b}"))
                        .hint(format!("{a} is connected to {}", around.join(", "))));
                }
                Ok(links)
            }
            Target::Switch(name) => {
                let switch = self.switch_named(name)?;
                let ports = self.ports(switch).iter();
                let mut links: Vec<u32> =
                    ports.flat_map(|port| [port.link, self.reverse(port.link)]).collect();
                for node in 0..self.nodes {
                    for nic in (0..self.nics).map(|nic| Nic { node, nic }) {
                        if self.leaf(nic) == switch {
                            links.extend([self.nic_up(nic), self.nic_down(nic)]);
                        }
                    }
                }
                Ok(links)
            }
        }
    }

    fn switch_named(&self, name: &str) -> Result<u32> {
        let names = self.switches();
        if let Some(at) = names.iter().position(|known| known == name) {
            return Ok(at as u32);
        }
        let error = InputError::new(format!("no switch `{name}`"));
        Err(match suggest::nearest(name, names.iter().map(String::as_str)) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => match (names.first(), names.last()) {
                (Some(first), Some(last)) => {
                    error.hint(format!("there are {} switches, {first} to {last}", names.len()))
                }
                _ => error.hint("a job on one node uses no switch"),
            },
        })
    }
}

fn below(number: u32, count: u32, what: &str) -> Result<()> {
    if number < count {
        return Ok(());
    }
    Err(InputError::new(match count {
        0 => format!("no {what} {number}: there are none in use"),
        _ => format!("no {what} {number}: they are 0 to {}", count - 1),
    }))
}
