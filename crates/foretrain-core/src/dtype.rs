//! Element types as the field's tools spell them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum DType {
    F64,
    F32,
    Tf32,
    F16,
    Bf16,
    F8E4m3,
    F8E5m2,
    F4,
    I64,
    I32,
    I16,
    I8,
    U8,
    U32,
    U64,
    Bool,
    Complex64,
    Complex128,
}

impl DType {
    /// Reads any spelling met in profiler traces, execution traces, NCCL kernel names and
    /// benchmark logs; `None` for an unknown one.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches("c10::").trim_start_matches("torch.");
        Some(match text.to_ascii_lowercase().as_str() {
            "double" | "float64" | "f64" | "fp64" => Self::F64,
            "float" | "float32" | "f32" | "fp32" => Self::F32,
            "tf32" => Self::Tf32,
            "half" | "float16" | "f16" | "fp16" => Self::F16,
            "bfloat16" | "bf16" => Self::Bf16,
            "float8_e4m3fn" | "float8_e4m3" | "fp8_e4m3" | "float8_e4m3fnuz" | "f8e4m3" | "fp8" => {
                Self::F8E4m3
            }
            "float8_e5m2" | "float8_e5m2fnuz" | "f8e5m2" | "fp8_e5m2" => Self::F8E5m2,
            "float4_e2m1fn_x2" | "fp4" | "f4" => Self::F4,
            "long" | "long int" | "int64" | "i64" | "int64_t" => Self::I64,
            "int" | "int32" | "i32" | "int32_t" => Self::I32,
            "short" | "short int" | "int16" | "i16" => Self::I16,
            "char" | "signed char" | "int8" | "i8" | "int8_t" => Self::I8,
            "byte" | "unsigned char" | "uint8" | "u8" | "uint8_t" => Self::U8,
            "unsigned int" | "uint32" | "u32" | "uint32_t" => Self::U32,
            "unsigned long" | "uint64" | "u64" | "uint64_t" => Self::U64,
            "bool" => Self::Bool,
            "complex64" | "complexfloat" | "complex<float>" => Self::Complex64,
            "complex128" | "complexdouble" | "complex<double>" => Self::Complex128,
            _ => return None,
        })
    }

    /// Size of one element in bits.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Complex128 => 128,
            Self::F64 | Self::I64 | Self::U64 | Self::Complex64 => 64,
            Self::F32 | Self::Tf32 | Self::I32 | Self::U32 => 32,
            Self::F16 | Self::Bf16 | Self::I16 => 16,
            Self::F8E4m3 | Self::F8E5m2 | Self::I8 | Self::U8 | Self::Bool => 8,
            Self::F4 => 4,
        }
    }

    /// Bytes of `count` elements, rounded up.
    pub const fn bytes_of(self, count: u64) -> u64 {
        (count as u128 * self.bits() as u128).div_ceil(8) as u64
    }

    /// The short name used in tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::Tf32 => "tf32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F8E4m3 => "f8e4m3",
            Self::F8E5m2 => "f8e5m2",
            Self::F4 => "f4",
            Self::I64 => "i64",
            Self::I32 => "i32",
            Self::I16 => "i16",
            Self::I8 => "i8",
            Self::U8 => "u8",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::Bool => "bool",
            Self::Complex64 => "complex64",
            Self::Complex128 => "complex128",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_understood() {
        for (text, want) in [
            ("c10::BFloat16", DType::Bf16),
            ("long int", DType::I64),
            ("Float", DType::F32),
            ("f16", DType::F16),
            ("int8_t", DType::I8),
            ("torch.float32", DType::F32),
        ] {
            assert_eq!(DType::parse(text), Some(want), "{text}");
        }
        assert_eq!(DType::parse("Scalar"), None);
        assert_eq!(DType::F4.bytes_of(3), 2);
        assert_eq!(DType::F16.bytes_of(10), 20);
    }
}
