//! What the sets make of tables.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::sets;
use crate::validate::corpus::Corpus;
use crate::validate::report::SetOutcome;
use crate::validate::roots::Root;

/// Scores a set on a directory with the given tables.
fn score(name: &str, tables: &[(&str, &str)]) -> SetOutcome {
    let dir = TempDir::new().unwrap();
    for (file, text) in tables {
        let path = dir.path().join(file);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).unwrap();
        fs::write(path, text).unwrap();
    }
    let root = Root::data(dir.path()).unwrap();
    let corpus = Corpus::new(&root, &|_| {}).unwrap();
    let set = sets().find(|set| set.name() == name).expect("a set of that name");
    set.score(&corpus)
}

const LLM: &str = "row_id,source,gpu,n_gpus,model,precision,seq_len,global_batch,micro_batch,tp,pp,vpp,cp,ep,\
                   sharding,act_recompute,layers,step_time_s,tokens_per_s_per_gpu,kind,notes\n";

#[test]
fn the_first_row_of_a_model_calibrates_the_others() {
    let rows = "a1,NVIDIA DGX Cloud Benchmarking,H100-SXM5-80GB,8,Llama 3.1 8b,BF16,8192,128,1,1,1,,2,,,,,12.9,,measured,\n\
                a2,NVIDIA DGX Cloud Benchmarking,H100-SXM5-80GB,16,Llama 3.1 8b,BF16,8192,256,1,1,1,,2,,,,,13.0,,measured,\n\
                a3,NVIDIA DGX Cloud Benchmarking,H100-SXM5-80GB,16,Llama 3.1 8b,BF16,8192,,,,,,,,,,,13.0,,measured,\n\
                a4,NVIDIA DGX Cloud Benchmarking,H100-SXM5-80GB,16,Llama 3.1 8b,BF16,8192,256,1,1,1,,2,,,,,99,,predicted,\n";
    let table = format!("{LLM}{rows}");
    // However the collection packs its tables.
    let tables = [("measured/e2e_llm_training.csv", &*table)];
    let plain = score("e2e-llm-dgx-cloud", &tables);
    assert_eq!(plain.rows.len(), 2, "{:?}", plain.skipped);
    assert_eq!(plain.skipped.len(), 1);
    assert!(plain.skipped[0].why.contains("global_batch"), "{:?}", plain.skipped);
    let calibrated = score("e2e-llm-dgx-cloud-calibrated", &tables);
    assert_eq!(calibrated.rows.len(), 1);
    let factor = 12.9 / plain.rows[0].predicted;
    let expected = plain.rows[1].predicted * factor;
    assert!((calibrated.rows[0].predicted / expected - 1.0).abs() < 1e-9);
}

#[test]
fn the_last_heading_names_a_row_s_system() {
    let row = |notes: &str| {
        format!(
            "b1,NVIDIA NeMo / Megatron-Bridge performance summary,DGX-GB300,64,GPT OSS 120B,BF16,4096,512,4,1,4,,1,8,\
             FSDP=0,,,,5630,measured,{notes}\n"
        )
    };
    let group = |notes: &str| {
        let table = format!("{LLM}{}", row(notes));
        let outcome =
            score("e2e-llm-megatron-bridge", &[("measured/e2e_llm_training.csv", &table)]);
        outcome.rows[0].group.clone()
    };
    assert!(group("section: System: DGX-GB300 > System: DGX-H100").contains("h100"));
    assert!(group("section: Model: GPT OSS 120B").contains("gb300"));
}

#[test]
fn mlperf_results_take_the_configuration_of_their_size_and_batch() {
    let configurations = "round,benchmark,config,dgxnnodes,tensor_model_parallel,pipeline_model_parallel,\
                          interleaved_pipeline,context_parallel,micro_batch_size,minibs\n\
                          v5.0,llama31_405b,config_DGXH100_64x8x288xtp8pp8cp2.sh,64,8,8,8,2,1,288\n";
    let results = "round,org,system,benchmark,accelerator,n_nodes,accel_per_node,n_accel,global_batch,\
                   step_time_s_derived\n\
                   v5.0,a,s1,llama31_405b,NVIDIA H100-SXM5-80GB,64,8,512,1152,60.0\n\
                   v5.0,b,s2,llama31_405b,NVIDIA H100-SXM5-80GB,64,8,512,1024,60.0\n\
                   v5.0,c,s3,llama31_405b,TPU-v6e,64,8,512,1152,60.0\n";
    let outcome = score(
        "e2e-mlperf-llama31-405b",
        &[
            ("measured/e2e_mlperf_training.csv", results),
            ("measured/mlperf_nvidia_parallel_configs.csv", configurations),
        ],
    );
    assert_eq!(outcome.rows.len(), 1, "{:?}", outcome.skipped);
    assert!(outcome.rows[0].what.contains("dp=4,cp=2,vpp=8"), "{}", outcome.rows[0].what);
    let why: Vec<&str> = outcome.skipped.iter().map(|skipped| &*skipped.why).collect();
    assert!(why.iter().any(|why| why.contains("batch is not that")), "{why:?}");
    assert!(why.iter().any(|why| why.contains("other accelerators")), "{why:?}");
}

#[test]
fn a_directory_without_tables_has_nothing_to_score() {
    for set in sets() {
        let outcome = score(set.name(), &[("measured/other.csv", "a\n1\n")]);
        assert!(outcome.rows.is_empty() && outcome.skipped.is_empty(), "{}", set.name());
    }
}

/// Tables torn at any place leave rows out, with reasons; they do not end the run.
#[test]
fn torn_rows_are_left_out() {
    let row = "c1,MosaicML llm-foundry,H100-SXM5-80GB,64,MPT-7b,amp_bf16,2048,384,6,1,1,,,,FSDP FULL_SHARD \
               mp=DEFAULT,ckpt=False cpu_offload=False,,,10643,measured,x\n";
    for cut in 0..row.len() {
        let table = format!("{LLM}{}", &row[..cut]);
        let outcome = score("e2e-llm-llm-foundry", &[("measured/e2e_llm_training.csv", &table)]);
        for row in &outcome.rows {
            assert!(row.predicted.is_finite() && row.predicted > 0.0);
        }
    }
    let whole =
        score("e2e-llm-llm-foundry", &[("measured/e2e_llm_training.csv", &format!("{LLM}{row}"))]);
    assert_eq!(whole.rows.len(), 1, "{:?}", whole.skipped);
}
