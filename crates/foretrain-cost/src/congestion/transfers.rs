//! What each algorithm moves from where to where.

use foretrain_core::{InputError, Result};
use foretrain_graph::CollectiveKind as Kind;
use foretrain_hardware::topology::{Network, Nic};

use super::group::{Group, Host, live_nics};
use crate::collective::{Method, bus_factor};

/// More flows take too much memory and time.
const MOST_TRANSFERS: usize = 1 << 22;

/// One flow before it is routed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Way {
    /// Between two devices of a node.
    Within { node: u32, from: u32, to: u32 },
    /// A device to the switch of its node and back.
    Switch { node: u32, device: u32 },
    /// Between two nodes.
    Between { from: Nic, to: Nic },
}

/// A way and the bytes that take it.
pub(super) type Transfer = (Way, f64);

/// The transfers of one collective.
pub(super) struct Transfers<'a> {
    group: &'a Group,
    network: &'a Network,
    crosses_rails_within: bool,
    list: Vec<Transfer>,
}

/// What `method` moves for a collective of `bytes`, all at once.
///
/// # Errors
/// If that is more than four million flows.
pub(super) fn transfers(
    group: &Group,
    network: &Network,
    crosses_rails_within: bool,
    (kind, method, bytes): (Kind, Method, f64),
) -> Result<Vec<Transfer>> {
    let mut all = Transfers { group, network, crosses_rails_within, list: Vec::new() };
    let ranks = group.ranks.len() as u32;
    match method {
        Method::Nothing => {}
        Method::Ring => {
            let open = matches!(kind, Kind::Broadcast | Kind::Reduce);
            all.ring(bytes * ring_share(kind, ranks), open);
        }
        Method::Tree => {
            all.chains(bytes);
            all.trees(bytes);
        }
        Method::Nvls => all.switches(bytes),
        Method::NvlsTree | Method::CollNet => {
            all.switches(bytes);
            all.trees(bytes);
        }
        Method::Pat => all.doubling(bytes / f64::from(ranks)),
        Method::Pairwise if kind == Kind::AllToAll => all.all_to_all(bytes / f64::from(ranks))?,
        Method::Pairwise => {
            for rank in 1..ranks as usize {
                all.either_way(kind == Kind::Gather, 0, rank, bytes / f64::from(ranks));
            }
        }
        Method::PointToPoint if kind == Kind::SendRecv => {
            let ranks = ranks as usize;
            (0..ranks).for_each(|rank| all.send(rank, (rank + 1) % ranks, bytes));
        }
        Method::PointToPoint => all.either_way(kind == Kind::Recv, 0, 1, bytes),
        Method::Binomial => all.binomial(kind, bytes),
    }
    Ok(all.list)
}

/// Share of the buffer that passes each link of a ring.
fn ring_share(kind: Kind, ranks: u32) -> f64 {
    match kind {
        Kind::Barrier => bus_factor(Kind::AllReduce, ranks),
        kind => bus_factor(kind, ranks),
    }
}

impl Transfers<'_> {
    fn rails(&self) -> usize {
        self.group.hosts[0].rails.len()
    }

    fn within(&mut self, host: &Host, from: usize, to: usize, bytes: f64) {
        let (from, to) = (host.devices[from], host.devices[to]);
        self.list.push((Way::Within { node: host.node, from, to }, bytes));
    }

    fn between(&mut self, from: usize, to: usize, rail: usize, bytes: f64) {
        let nic = |host: &Host| Nic { node: host.node, nic: host.rails[rail] };
        let hosts = &self.group.hosts;
        self.list.push((Way::Between { from: nic(&hosts[from]), to: nic(&hosts[to]) }, bytes));
    }

    /// One ring per rail, each leaving a node at another of its members. An open ring has no way
    /// from the last node to the first.
    fn ring(&mut self, bytes: f64, open: bool) {
        let group = self.group;
        if let [host] = &group.hosts[..] {
            return self.ring_within(host, bytes, open);
        }
        let (rails, nodes) = (self.rails(), group.hosts.len());
        let part = bytes / rails as f64;
        for (at, host) in group.hosts.iter().enumerate() {
            self.chain(host, bytes, rails);
            for rail in 0..rails {
                if !(open && at + 1 == nodes) {
                    self.between(at, (at + 1) % nodes, rail, part);
                }
            }
        }
    }

    fn ring_within(&mut self, host: &Host, bytes: f64, open: bool) {
        let count = host.devices.len();
        if self.network.is_meshed() {
            // As many rings as let every pair's links take part.
            let part = bytes / (count - 1).max(1) as f64;
            for from in 0..count {
                (0..count)
                    .filter(|to| *to != from)
                    .for_each(|to| self.within(host, from, to, part));
            }
            return;
        }
        for from in 0..count - usize::from(open) {
            self.within(host, from, (from + 1) % count, bytes);
        }
    }

    /// What passes from member to member of one node: over all pairs of a mesh, else in as many
    /// chains as rails, each starting at another member.
    fn chain(&mut self, host: &Host, bytes: f64, rails: usize) {
        let count = host.devices.len();
        if self.network.is_meshed() {
            for from in 0..count {
                let others = (0..count).filter(|to| *to != from);
                others.for_each(|to| self.within(host, from, to, bytes / count as f64));
            }
            return;
        }
        for rail in 0..rails {
            for step in 1..count {
                let (from, to) = ((rail + step - 1) % count, (rail + step) % count);
                self.within(host, from, to, bytes / rails as f64);
            }
        }
    }

    /// Sums go along the chain of each node and come back.
    fn chains(&mut self, bytes: f64) {
        let (group, rails) = (self.group, self.rails());
        for host in &group.hosts {
            let first = self.list.len();
            self.chain(host, bytes, rails);
            for at in first..self.list.len() {
                if let (Way::Within { node, from, to }, bytes) = self.list[at] {
                    self.list.push((Way::Within { node, from: to, to: from }, bytes));
                }
            }
        }
    }

    /// Two binary trees over the nodes for each rail, half of the buffer each: sums go up and
    /// results come down. Who is a leaf in one is an inner node of the other.
    fn trees(&mut self, bytes: f64) {
        let (rails, nodes) = (self.rails(), self.group.hosts.len());
        let part = bytes / 2.0 / rails as f64;
        for node in 1..nodes {
            let above = parent(node, nodes);
            let turned = |node: usize| {
                if nodes.is_multiple_of(2) { nodes - 1 - node } else { (node + 1) % nodes }
            };
            for rail in 0..rails {
                for (low, high) in [(node, above), (turned(node), turned(above))] {
                    self.between(low, high, rail, part);
                    self.between(high, low, rail, part);
                }
            }
        }
    }

    fn switches(&mut self, bytes: f64) {
        for host in &self.group.hosts {
            let ways = host.devices.iter().map(|&device| Way::Switch { node: host.node, device });
            self.list.extend(ways.map(|way| (way, bytes)));
        }
    }

    /// Shards go to ranks at doubling distances, twice as many each time.
    fn doubling(&mut self, shard: f64) {
        let ranks = self.group.ranks.len();
        let mut distance = 1;
        while distance < ranks {
            let shards = distance.min(ranks - distance) as f64;
            for rank in 0..ranks {
                self.send(rank, (rank + distance) % ranks, shard * shards);
            }
            distance *= 2;
        }
    }

    fn either_way(&mut self, turned: bool, from: usize, to: usize, bytes: f64) {
        if turned { self.send(to, from, bytes) } else { self.send(from, to, bytes) }
    }

    /// From rank to rank, over the NICs next to them.
    fn send(&mut self, from: usize, to: usize, bytes: f64) {
        let (from, to) = (self.group.ranks[from], self.group.ranks[to]);
        if from.0 == to.0 {
            let (node, from, to) = (from.0, from.1, to.1);
            return self.list.push((Way::Within { node, from, to }, bytes));
        }
        let each = (self.network.nics_per_node() / self.network.devices_per_node()).max(1) as usize;
        let near = |(node, device): (u32, u32)| {
            let mut nics = live_nics(self.network, node, &[device]);
            nics.truncate(each);
            nics
        };
        let (out, into) = (near(from), near(to));
        let ways = out.len().min(into.len());
        for (&out, &into) in out.iter().zip(&into) {
            let way = Way::Between {
                from: Nic { node: from.0, nic: out },
                to: Nic { node: to.0, nic: into },
            };
            self.list.push((way, bytes / ways as f64));
        }
    }

    /// `part` from every rank to every other. What goes from one NIC to another is one flow.
    fn all_to_all(&mut self, part: f64) -> Result<()> {
        let group = self.group;
        let users: Vec<Vec<(u32, f64)>> =
            group.hosts.iter().map(|host| self.users_of_nics(host)).collect();
        let count: usize = users.iter().map(Vec::len).sum();
        let flows = if self.crosses_rails_within {
            count.saturating_mul(group.hosts.len())
        } else {
            count.saturating_mul(count)
        };
        if flows > MOST_TRANSFERS {
            return Err(InputError::new(format!(
                "an all-to-all of {} ranks takes {flows} flows, at most {MOST_TRANSFERS} are simulated",
                group.ranks.len()
            ))
            .hint("ask about fewer ranks, or take the closed form, which does not see congestion"));
        }
        for (from, source) in group.hosts.iter().enumerate() {
            self.pairs_within(source, part);
            let senders = source.devices.len() as f64;
            for (to, target) in group.hosts.iter().enumerate().filter(|(to, _)| *to != from) {
                for &(nic, receivers) in &users[to] {
                    let into = Nic { node: target.node, nic };
                    let mut push = |nic: u32, bytes: f64| {
                        let from = Nic { node: source.node, nic };
                        self.list.push((Way::Between { from, to: into }, bytes));
                    };
                    let same_rail = users[from].iter().any(|(own, _)| *own == nic);
                    if self.crosses_rails_within && same_rail {
                        push(nic, part * senders * receivers);
                    } else {
                        let own = users[from].iter();
                        own.for_each(|&(own, senders)| push(own, part * senders * receivers));
                    }
                }
            }
        }
        Ok(())
    }

    /// Live NICs of a host, each with the number of members that use it: a part where a member
    /// has several.
    fn users_of_nics(&self, host: &Host) -> Vec<(u32, f64)> {
        let each = (self.network.nics_per_node() / self.network.devices_per_node()).max(1) as usize;
        let mut users: Vec<(u32, f64)> = Vec::new();
        if self.group.hosts.len() == 1 {
            return users;
        }
        for device in &host.devices {
            let mut nics = live_nics(self.network, host.node, &[*device]);
            nics.truncate(each);
            let share = 1.0 / nics.len() as f64;
            for nic in nics {
                match users.iter_mut().find(|(known, _)| *known == nic) {
                    Some((_, count)) => *count += share,
                    None => users.push((nic, share)),
                }
            }
        }
        users
    }

    /// Parts for members of the node, and with rails those that leave over another's NIC.
    fn pairs_within(&mut self, host: &Host, part: f64) {
        let count = host.devices.len();
        let others = (self.group.hosts.len() - 1) as f64;
        let times = if self.crosses_rails_within { 1.0 + others } else { 1.0 };
        for from in 0..count {
            for to in (0..count).filter(|to| *to != from) {
                self.within(host, from, to, part * times);
            }
        }
    }

    /// Who has the data hands it on, to twice as many each time; sums come the other way.
    fn binomial(&mut self, kind: Kind, bytes: f64) {
        let ranks = self.group.ranks.len();
        let (down, up) = match kind {
            Kind::Broadcast => (true, false),
            Kind::Reduce => (false, true),
            _ => (true, true),
        };
        let mut have = 1;
        while have < ranks {
            for rank in have..(2 * have).min(ranks) {
                if down {
                    self.send(rank - have, rank, bytes);
                }
                if up {
                    self.send(rank, rank - have, bytes);
                }
            }
            have *= 2;
        }
    }
}

/// The node above another in the in-order binary tree with root 0: the lowest bit that is set
/// moves up by one place, or goes where there is no such node.
fn parent(node: usize, nodes: usize) -> usize {
    let bit = node & node.wrapping_neg();
    let above = (node ^ bit) | (bit << 1);
    if above < nodes { above } else { node ^ bit }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_reaches_the_root_and_has_two_children_at_most() {
        for nodes in 2..200 {
            let mut children = vec![0; nodes];
            let depth = nodes.ilog2() + 1;
            for node in 1..nodes {
                children[parent(node, nodes)] += 1;
                let (mut at, mut steps) = (node, 0);
                while at != 0 {
                    at = parent(at, nodes);
                    steps += 1;
                }
                assert!(steps <= depth, "{node} of {nodes} is {steps} deep");
            }
            assert!(children.iter().all(|count| *count <= 2));
            assert!(children[0] <= 1);
        }
    }
}
