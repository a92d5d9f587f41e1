//! Rows that the built-in constants rest on, which no set without calibration may score.

use super::tables::MeasuredRow;

/// Logs, by the start of their names; see `data/collectives.toml` of `foretrain-hardware`.
const LOGS: [&str; 18] = [
    "echo_azure_a100_40g_2gpu",
    "echo_azure_a100_40g_4gpu",
    "echo_azure_a100_40g_8gpu",
    "echo_azure_a100_40g_16gpu",
    "superbench_a100_40g",
    "azure_aks_a100",
    "nvidia_dgxh100",
    "aws_p4d",
    "aws_p5_",
    "aws_p3dn",
    "aws_g4dn",
    "gke_a3high",
    "gcp_a3mega",
    "gke_a3mega",
    "amd_aac8",
    "amd_aac11_mi325x_1node",
    "autodl_2080ti",
    "kalavai_rtx4090",
];

/// Machines of aiconfigurator's table.
const MACHINES: [&str; 3] = ["h200_sxm", "b300_sxm", "gb300"];

pub(super) fn is_given(row: &MeasuredRow) -> bool {
    match row.table {
        "collectives_nccl_tests" => LOGS.iter().any(|log| row.system.starts_with(log)),
        "collectives_aiconfigurator_nccl" => MACHINES.contains(&row.system.as_str()),
        "collectives_vtrain_allreduce_lut" => row.gpu.contains("A100"),
        _ => false,
    }
}
