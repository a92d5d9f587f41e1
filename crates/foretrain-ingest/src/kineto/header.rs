//! Header members of a trace: devices, distribution, clock base.

use foretrain_core::{Ledger, Severity};
use foretrain_trace::{DeviceInfo, ProcessGroup, TraceMeta};
use serde_json::Value;

use crate::json::number;

/// Header members longer than this are not looked into.
const LONGEST: usize = 64 << 20;

/// What the header said.
#[derive(Debug, Default)]
pub(crate) struct Header {
    pub(crate) rank: Option<u32>,
    pub(crate) world_size: Option<u32>,
    pub(crate) backend: String,
    pub(crate) groups: Vec<ProcessGroup>,
    pub(crate) devices: Vec<DeviceInfo>,
    pub(crate) base_nanos: i64,
    pub(crate) host: String,
    /// Whether a member that only PyTorch's profiler writes was there.
    pub(crate) is_kineto: bool,
    rocm: bool,
    cuda: bool,
}

impl Header {
    /// Takes in one member.
    pub(crate) fn member(&mut self, key: &str, value: &str, ledger: &mut Ledger) {
        match key {
            "schemaVersion"
            | "deviceProperties"
            | "distributedInfo"
            | "baseTimeNanoseconds"
            | "record_shapes"
            | "with_stack"
            | "profile_memory"
            | "trace_id" => {
                self.is_kineto = true;
            }
            "traceName"
            | "host_name"
            | "hostname"
            | "hip_driver_version"
            | "hip_runtime_version"
            | "cuda_driver_version"
            | "cuda_runtime_version" => {}
            _ => return,
        }
        if value.len() > LONGEST {
            ledger.record(Severity::Dropped, "long-header", "header member too long to look into");
            return;
        }
        match serde_json::from_str(value) {
            Ok(value) => self.take(key, &value),
            Err(_) => ledger.record_at(
                Severity::Dropped,
                "bad-header",
                "header member that cannot be read",
                || key.to_owned(),
            ),
        }
    }

    fn take(&mut self, key: &str, value: &Value) {
        match key {
            "deviceProperties" => self.devices = list(value).iter().map(device).collect(),
            "distributedInfo" => self.distributed(value),
            "baseTimeNanoseconds" => self.base_nanos = signed(value).unwrap_or(0),
            "host_name" | "hostname" => self.host = text(value),
            "hip_driver_version" | "hip_runtime_version" => self.rocm = true,
            "cuda_driver_version" | "cuda_runtime_version" => self.cuda = true,
            _ => {}
        }
    }

    fn distributed(&mut self, value: &Value) {
        self.rank = small(&value["rank"]);
        self.world_size = small(&value["world_size"]);
        self.backend = text(&value["backend"]);
        // Early versions wrote the list as a string of JSON.
        let config = &value["pg_config"];
        let parsed = config.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        self.groups = list(parsed.as_ref().unwrap_or(config)).iter().map(group).collect();
    }

    /// The producer as far as the header tells.
    pub(crate) fn producer(&self, old_layout: bool) -> String {
        match (old_layout, self.rocm, self.cuda) {
            (true, _, _) => "PyTorch profiler (1.8 layout)".into(),
            (_, true, _) => "Kineto (ROCm)".into(),
            (_, _, true) => "Kineto (CUDA)".into(),
            _ => "Kineto".into(),
        }
    }

    /// Moves what was found into the table's facts.
    pub(crate) fn fill(self, meta: &mut TraceMeta) {
        if self.rank.is_some() {
            meta.rank_source = "distributedInfo".into();
        }
        meta.rank = self.rank;
        meta.world_size = self.world_size;
        meta.backend = self.backend;
        meta.groups = self.groups;
        meta.devices = self.devices;
        meta.host = self.host;
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn signed(value: &Value) -> Option<i64> {
    number::integer(&text(value))
}

/// A count that fits `u32`; written as a number or as text.
fn small(value: &Value) -> Option<u32> {
    signed(value).and_then(|value| u32::try_from(value).ok())
}

fn device(value: &Value) -> DeviceInfo {
    let number = |key: &str| small(&value[key]).unwrap_or(0);
    DeviceInfo {
        id: signed(&value["id"]).unwrap_or(-1),
        name: text(&value["name"]),
        memory_bytes: value["totalGlobalMem"].as_u64().unwrap_or(0),
        compute_capability: (number("computeMajor"), number("computeMinor")),
        multiprocessors: number("numSms"),
    }
}

fn group(value: &Value) -> ProcessGroup {
    let ranks: Vec<u32> = list(&value["ranks"]).iter().filter_map(small).collect();
    let stated = small(&value["pg_size"]).or_else(|| small(&value["group_size"]));
    ProcessGroup {
        name: text(&value["pg_name"]),
        description: text(&value["pg_desc"]),
        backend: backend_of(&text(&value["backend_config"])),
        size: stated.unwrap_or_else(|| u32::try_from(ranks.len()).unwrap_or(u32::MAX)),
        ranks,
    }
}

/// The backend that device tensors use, of a configuration such as "cpu:gloo,cuda:nccl".
fn backend_of(config: &str) -> String {
    let parts: Vec<&str> = config.split(',').filter_map(|part| part.split(':').nth(1)).collect();
    let device = parts.iter().find(|backend| **backend != "gloo").or(parts.first());
    device.map_or(config, |backend| backend).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distribution_and_devices_are_read_in_any_spelling() {
        let mut header = Header::default();
        let mut ledger = Ledger::new();
        for (key, value) in [
            (
                "distributedInfo",
                r#"{"backend":"nccl","rank":3,"world_size":"8","pg_config":
              [{"pg_name":"0","pg_desc":"default_pg","backend_config":"cpu:gloo,cuda:nccl","ranks":[0,1]}]}"#,
            ),
            (
                "deviceProperties",
                r#"[{"id":0,"name":"A100","totalGlobalMem":42505273344,
              "computeMajor":8,"computeMinor":0,"numSms":108}]"#,
            ),
            ("baseTimeNanoseconds", "1711964646000000000"),
            ("INFO", "[\"x\"]"),
            ("host_name", "oops"),
        ] {
            header.member(key, value, &mut ledger);
        }
        assert_eq!((header.rank, header.world_size), (Some(3), Some(8)));
        assert_eq!((header.groups[0].size, header.groups[0].backend.as_str()), (2, "nccl"));
        assert_eq!(header.devices[0].multiprocessors, 108);
        assert_eq!(header.base_nanos, 1_711_964_646_000_000_000);
        assert_eq!(ledger.count("bad-header"), 1);
        assert!(header.is_kineto);
    }
}
