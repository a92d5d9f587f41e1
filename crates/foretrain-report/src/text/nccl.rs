//! What NCCL says of itself, as fields and tables.

use foretrain_core::Bytes;

use super::sheet::Sheet;
use super::table::{Side, Table};
use super::units::{counted, name, plain};
use crate::json::NcclReport;

/// Choices that a page shows; JSON has all.
const MOST_CHOICES: usize = 40;

/// A section on one file.
pub(super) fn nccl(facts: &NcclReport, sheet: &mut Sheet) {
    sheet.heading("What NCCL says of itself");
    sheet.field("file", &name(&facts.path, 400));
    if let Some(version) = &facts.version {
        sheet.field("version", &name(version, 100));
    }
    field(sheet, "ranks", communicator(facts));
    field(sheet, "network", network(facts));
    if let Some(nvls) = facts.nvls {
        let can = if nvls { "the switch can multicast" } else { "no multicast in the switch" };
        sheet.field("NVLS", can);
    }
    field(sheet, "channels", channels(facts));
    graphs(facts, sheet);
    enabled(facts, sheet);
    costs(facts, sheet);
    choices(facts, sheet);
}

fn field(sheet: &mut Sheet, label: &str, parts: Vec<String>) {
    if !parts.is_empty() {
        sheet.field(label, &parts.join(", "));
    }
}

fn communicator(facts: &NcclReport) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(facts.ranks.map(|ranks| format!("{ranks} in the largest communicator")));
    parts.extend(facts.nodes.map(|nodes| counted(nodes as usize, "node")));
    parts.extend(facts.local_ranks.map(|ranks| format!("{ranks} on a node")));
    if facts.multi_node_nvlink == Some(true) {
        parts.push("NVLink beyond the host".into());
    }
    parts
}

fn network(facts: &NcclReport) -> Vec<String> {
    let mut parts: Vec<String> = facts.network.iter().map(|text| name(text, 60)).collect();
    parts.extend(facts.network_plugin.as_ref().map(|text| format!("plugin {}", name(text, 60))));
    parts
        .extend(facts.network_provider.as_ref().map(|text| format!("provider {}", name(text, 40))));
    match (&facts.nics[..], facts.nic_count) {
        ([], Some(count)) => parts.push(counted(count as usize, "NIC")),
        ([], None) => {}
        (nics, _) => {
            parts.push(format!("{} ({})", counted(nics.len(), "NIC"), name(&nics.join(" "), 300)));
        }
    }
    parts.extend(
        facts
            .gpu_direct
            .map(|direct| if direct { "GPUDirect RDMA" } else { "no GPUDirect RDMA" }.to_owned()),
    );
    parts
}

fn channels(facts: &NcclReport) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(facts.collective_channels.map(|count| format!("{count} for collectives")));
    parts.extend(facts.nvls_channels.map(|count| format!("{count} for NVLS")));
    parts.extend(
        facts.point_to_point_channels.map(|count| format!("{count} for sends and receives")),
    );
    parts.extend(facts.channels_per_peer.map(|count| format!("{count} to each peer")));
    parts
}

fn graphs(facts: &NcclReport, sheet: &mut Sheet) {
    use Side::{Left, Right};
    if facts.graphs.is_empty() {
        return;
    }
    sheet.blank();
    let mut table = Table::new(&[
        ("Graph", Left),
        ("Channels", Right),
        ("GB/s inside", Right),
        ("GB/s outside", Right),
        ("Inside", Left),
        ("To the NIC", Left),
    ]);
    for graph in &facts.graphs {
        let path = |path: &Option<String>| path.clone().unwrap_or_else(|| "-".into());
        table.row(vec![
            graph.pattern.clone(),
            graph.channels.to_string(),
            plain(graph.intra_gb_per_s),
            plain(graph.inter_gb_per_s),
            path(&graph.intra_path),
            path(&graph.inter_path),
        ]);
    }
    sheet.table(table);
}

fn enabled(facts: &NcclReport, sheet: &mut Sheet) {
    if facts.enabled.is_empty() {
        return;
    }
    sheet.blank();
    let mut table = Table::new(&[
        ("May use", Side::Left),
        ("Algorithms", Side::Left),
        ("Protocols", Side::Left),
    ]);
    for enabled in &facts.enabled {
        let (algorithms, protocols) = (enabled.algorithms.join(" "), enabled.protocols.join(" "));
        table.row(vec![enabled.kind.clone(), algorithms, protocols]);
    }
    sheet.table(table);
}

fn costs(facts: &NcclReport, sheet: &mut Sheet) {
    use Side::{Left, Right};
    if facts.costs.is_empty() {
        return;
    }
    sheet.blank();
    let mut table = Table::new(&[
        ("NCCL's own estimate", Left),
        ("Algorithm", Left),
        ("Protocol", Left),
        ("us", Right),
        ("algbw GB/s", Right),
    ]);
    for cost in &facts.costs {
        table.row(vec![
            cost.kind.clone(),
            cost.algorithm.clone(),
            cost.protocol.clone(),
            plain(cost.latency_us),
            plain(cost.algbw_gb_per_s),
        ]);
    }
    sheet.table(table);
}

fn choices(facts: &NcclReport, sheet: &mut Sheet) {
    use Side::{Left, Right};
    if facts.choices.is_empty() {
        return;
    }
    sheet.blank();
    let mut table = Table::new(&[
        ("Choice", Left),
        ("Size", Right),
        ("Algorithm", Left),
        ("Protocol", Left),
        ("Channels", Right),
        ("us expected", Right),
    ]);
    for choice in facts.choices.iter().take(MOST_CHOICES) {
        let channels = choice.first_channel.zip(choice.last_channel);
        table.row(vec![
            choice.kind.clone().unwrap_or_else(|| "-".into()),
            Bytes::new(choice.size_bytes).to_string(),
            choice.algorithm.clone(),
            choice.protocol.clone(),
            channels.map_or_else(|| "-".into(), |(first, last)| format!("{first} to {last}")),
            choice.time_us.map_or_else(|| "-".into(), plain),
        ]);
    }
    sheet.table(table);
    let hidden = facts.choices.len().saturating_sub(MOST_CHOICES);
    if hidden > 0 {
        sheet.line(&format!("... and {hidden} more"));
    }
}
