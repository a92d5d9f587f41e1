use super::*;

fn file(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

const SMALL: &str = r#"{"__metadata__":{"format":"pt"},
    "conv.bias":{"dtype":"F16","shape":[2],"data_offsets":[72,76]},
    "conv.weight":{"dtype":"F16","shape":[2,2,3,3],"data_offsets":[0,72]},
    "embed.weight":{"dtype":"F8_E4M3","shape":[10,2],"data_offsets":[76,96]},
    "norm.weight":{"dtype":"F16","shape":[2],"data_offsets":[96,100]}}"#;

#[test]
fn layers_take_the_bias_that_is_named_after_them() {
    let model = parse_weights(&file(SMALL, 100)).unwrap();
    let seen: Vec<_> = model
        .layers
        .iter()
        .map(|layer| (layer.name.as_str(), layer.signature.to_string(), layer.bytes.get()))
        .collect();
    let conv = ("conv", "conv 2->2 3x3 bias f16".to_owned(), 76);
    let embedding = ("embed", "embedding 10x2 f8_e4m3".to_owned(), 20);
    assert_eq!(seen[0], conv);
    assert_eq!((seen[1].0, seen[1].2), (embedding.0, embedding.2));
    assert_eq!(model.private.get(), 4);
}

#[test]
fn headers_that_contradict_the_file_are_refused() {
    let error = |bytes: &[u8]| parse_weights(bytes).unwrap_err().to_string();
    assert!(error(&file(SMALL, 99)).contains("of 99 bytes"));
    assert!(error(&file(SMALL, 103)).contains("3 bytes at the end"));
    assert!(error(b"abc").contains("ends before"));
    assert!(error(&u64::MAX.to_le_bytes()).contains("at most"));
    assert!(error(&file(SMALL, 100)[..60]).contains("ends before"));
    let wrong = SMALL.replace("[2,2,3,3]", "[2,2,3,4]");
    assert!(error(&file(&wrong, 100)).contains("by its shape"));
    let huge = SMALL.replace("[2,2,3,3]", "[4294967296,4294967296,4]");
    assert!(error(&file(&huge, 100)).contains("larger than any file"));
    let twice = SMALL.replace("norm.weight", "conv.bias");
    assert!(error(&file(&twice, 100)).contains("two tensors"));
    assert!(error(&file("[]", 0)).contains("tensors by name"));
}

#[test]
fn tensors_neither_overlap_nor_leave_gaps() {
    let of = |first: (u64, u64), second: (u64, u64), data| {
        let tensor = |name: &str, (begin, end): (u64, u64)| {
            let bytes = end - begin;
            format!(
                r#""{name}":{{"dtype":"U8","shape":[1,{bytes}],"data_offsets":[{begin},{end}]}}"#
            )
        };
        let header = format!("{{{},{}}}", tensor("a", first), tensor("b", second));
        parse_weights(&file(&header, data)).map_err(|error| error.to_string())
    };
    assert!(of((0, 4), (4, 8), 8).is_ok() && of((4, 8), (0, 4), 8).is_ok());
    assert!(of((0, 0), (0, 4), 4).is_ok(), "a tensor may be empty");
    assert!(of((0, 4), (2, 6), 6).unwrap_err().contains("\"b\" begins at byte 2"));
    assert!(of((0, 4), (0, 4), 4).unwrap_err().contains("within \"a\", which ends at 4"));
    assert!(of((0, 4), (6, 8), 8).unwrap_err().contains("bytes 4 to 6"));
    assert!(of((1, 4), (4, 8), 8).unwrap_err().contains("bytes 0 to 1"));
}

#[test]
fn types_that_the_format_does_not_have_are_named() {
    let of = |dtype: &str| {
        let header = format!(r#"{{"w":{{"dtype":"{dtype}","shape":[2,2],"data_offsets":[0,4]}}}}"#);
        parse_weights(&file(&header, 4))
    };
    assert_eq!(of("F8_E4M3FNUZ").unwrap().layers.len(), 1);
    let error = of("Q99").unwrap_err();
    assert_eq!(error.to_string(), "tensor \"w\" is of the unknown type \"Q99\"");
    assert!(error.hints()[0].contains("BF16"), "{error:?}");
    assert_eq!(of("F8_E4M4").unwrap_err().hints(), ["did you mean `F8_E4M3`?"]);
    assert!(of("F8_E8M0").unwrap_err().to_string().contains("F8_E8M0, which is not compared"));
}

#[test]
fn an_index_names_its_neighbours_only() {
    let directory = std::env::temp_dir().join(format!("weights-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(directory.join(name), bytes).unwrap();
    write("part-1.safetensors", &file(SMALL, 100));
    let index = |tensor: &str, place: &str| {
        write(INDEX, format!(r#"{{"weight_map":{{"{tensor}":"{place}"}}}}"#).as_bytes());
        read_weights(&directory)
    };
    assert!(is_weights(&directory) || index("conv.weight", "part-1.safetensors").is_ok());
    assert_eq!(index("conv.weight", "part-1.safetensors").unwrap().layers.len(), 2);
    let error = index("lost.weight", "part-1.safetensors").unwrap_err();
    assert!(error.to_string().contains("no file holds"), "{error}");
    write("part-2.safetensors", &file(SMALL, 100));
    write(
        INDEX,
        br#"{"weight_map":{"conv.weight":"part-1.safetensors","conv.bias":"part-2.safetensors"}}"#,
    );
    let error = read_weights(&directory).unwrap_err();
    assert!(error.to_string().contains("is in another file"), "{error}");
    let error = index("conv.weight", "../part-1.safetensors").unwrap_err();
    assert!(error.to_string().contains("beside the index"), "{error}");
    std::fs::remove_dir_all(&directory).unwrap();
}
