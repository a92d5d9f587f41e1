//! The header of one file: tensors by name, held against the file's length and against each other.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use foretrain_core::words::counted;
use foretrain_core::{Bytes, DType, InputError, Result, suggest};
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};

/// Longest header that is read; the format's own readers take no longer one either.
const LONGEST: u64 = 100_000_000;
const AGAIN: &str = "download the file again";

/// A tensor as a header describes it.
#[derive(Debug, Deserialize)]
pub(super) struct Tensor {
    dtype: String,
    pub(super) shape: Vec<u64>,
    data_offsets: (u64, u64),
}

/// All types of the format with the bits of an element, and the type that stands for them here; some
/// have none.
const TYPES: [(&str, u32, Option<DType>); 22] = [
    ("BOOL", 8, Some(DType::Bool)),
    ("F4", 4, Some(DType::F4)),
    ("F6_E2M3", 6, None),
    ("F6_E3M2", 6, None),
    ("U8", 8, Some(DType::U8)),
    ("I8", 8, Some(DType::I8)),
    ("F8_E5M2", 8, Some(DType::F8E5m2)),
    ("F8_E4M3", 8, Some(DType::F8E4m3)),
    ("F8_E8M0", 8, None),
    ("F8_E4M3FNUZ", 8, Some(DType::F8E4m3)),
    ("F8_E5M2FNUZ", 8, Some(DType::F8E5m2)),
    ("I16", 16, Some(DType::I16)),
    ("U16", 16, None),
    ("F16", 16, Some(DType::F16)),
    ("BF16", 16, Some(DType::Bf16)),
    ("I32", 32, Some(DType::I32)),
    ("U32", 32, Some(DType::U32)),
    ("F32", 32, Some(DType::F32)),
    ("C64", 64, Some(DType::Complex64)),
    ("F64", 64, Some(DType::F64)),
    ("I64", 64, Some(DType::I64)),
    ("U64", 64, Some(DType::U64)),
];

pub(super) type Tensors = BTreeMap<String, Tensor>;

/// The header of the file at a path.
pub(super) fn of_file(path: &Path) -> Result<Tensors> {
    let mut file = File::open(path).map_err(|error| InputError::io(&error, path))?;
    let length = file.metadata().map_err(|error| InputError::io(&error, path))?.len();
    read(&mut file, length).map_err(|error| error.in_file(path))
}

/// The header of a file of so many bytes.
pub(super) fn read(source: &mut impl Read, length: u64) -> Result<Tensors> {
    let short = || InputError::new("the file ends before its header does").hint(AGAIN);
    let mut size = [0; 8];
    source.read_exact(&mut size).map_err(|_| short())?;
    let size = u64::from_le_bytes(size);
    if size > LONGEST {
        let message = format!("a header of {size} bytes; at most {LONGEST} are read");
        return Err(InputError::new(message).hint("this is no safetensors file, or a damaged one"));
    }
    let data = length.checked_sub(8 + size).ok_or_else(short)?;
    let mut text = Vec::new();
    source.take(size).read_to_end(&mut text).map_err(|_| short())?;
    if text.len() as u64 != size {
        return Err(short());
    }
    let header: Header = serde_json::from_slice(&text)
        .map_err(|error| InputError::new(format!("a header that cannot be read: {error}")))?;
    for (name, tensor) in &header.0 {
        tensor.check(name, data)?;
    }
    check_order(&header.0, data)?;
    Ok(header.0)
}

/// Tensors must follow each other without gaps from the first byte of the data to the last: so the
/// format has it, and what is otherwise is damaged, or two tensors are one.
fn check_order(tensors: &Tensors, data: u64) -> Result<()> {
    let mut places: Vec<((u64, u64), &str)> =
        tensors.iter().map(|(name, tensor)| (tensor.data_offsets, name.as_str())).collect();
    places.sort_unstable();
    let mut before: Option<&str> = None;
    let mut end = 0;
    for ((begin, next), name) in places {
        let after = before.map_or_else(|| "the header".into(), |before| format!("{before:?}"));
        if begin < end {
            let message = format!(
                "tensor {name:?} begins at byte {begin} of the data, within {after}, which ends at {end}"
            );
            return Err(InputError::new(message).hint(AGAIN));
        }
        if begin > end {
            let message = format!(
                "bytes {end} to {begin} of the data, between {after} and tensor {name:?}, belong to no tensor"
            );
            return Err(InputError::new(message).hint(AGAIN));
        }
        (before, end) = (Some(name), next);
    }
    if end < data {
        let message =
            format!("{} at the end of the data belong to no tensor", counted(data - end, "byte"));
        return Err(InputError::new(message).hint(AGAIN));
    }
    Ok(())
}

impl Tensor {
    /// Its type must be one of the format, and its place lie in the file and be as long as its shape
    /// says.
    fn check(&self, name: &str, data: u64) -> Result<()> {
        let wrong =
            |why: String| Err(InputError::new(format!("tensor {name:?} {why}")).hint(AGAIN));
        let Some((_, bits, _)) = self.known() else {
            let nearest = suggest::nearest(&self.dtype, TYPES.map(|(name, ..)| name));
            let message = format!("tensor {name:?} is of the unknown type {:?}", self.dtype);
            return Err(InputError::new(message).hint(match nearest {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => format!("types are {}", TYPES.map(|(name, ..)| name).join(", ")),
            }));
        };
        let (begin, end) = self.data_offsets;
        if begin > end || end > data {
            return wrong(format!("lies at {begin}..{end} of {} of data", counted(data, "byte")));
        }
        let elements = self.shape.iter().try_fold(1_u64, |all, &side| all.checked_mul(side));
        let Some(elements) = elements else { return wrong("is larger than any file".into()) };
        let bytes = (u128::from(elements) * u128::from(*bits)).div_ceil(8);
        if bytes != u128::from(end - begin) {
            return wrong(format!(
                "has {} by its shape, and {} in the file",
                counted(bytes, "byte"),
                end - begin
            ));
        }
        Ok(())
    }

    fn known(&self) -> Option<&'static (&'static str, u32, Option<DType>)> {
        TYPES.iter().find(|(name, ..)| *name == self.dtype)
    }

    /// As the header spells it.
    pub(super) fn spelling(&self) -> &str {
        &self.dtype
    }

    /// What stands for its type here, if anything does.
    pub(super) fn dtype(&self) -> Option<DType> {
        self.known().and_then(|(_, _, dtype)| *dtype)
    }

    pub(super) fn bytes(&self) -> Bytes {
        Bytes::new(self.data_offsets.1 - self.data_offsets.0)
    }
}

/// Tensors by name; the entry of free text beside them is passed over.
struct Header(BTreeMap<String, Tensor>);

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Header;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tensors by name")
            }
            fn visit_map<M: MapAccess<'de>>(
                self,
                mut map: M,
            ) -> std::result::Result<Header, M::Error> {
                let mut tensors = BTreeMap::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        map.next_value::<IgnoredAny>()?;
                    } else if tensors.insert(name.clone(), map.next_value()?).is_some() {
                        return Err(M::Error::custom(format!("two tensors are called {name:?}")));
                    }
                }
                Ok(Header(tensors))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}
