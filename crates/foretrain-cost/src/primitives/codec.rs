//! How gradients are shrunk before they are sent.

use foretrain_core::{Bytes, InputError, Result, suggest};
use serde::{Deserialize, Serialize};

/// A way to shrink a gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// A cast to 16 bits (fp16 or bf16).
    Half,
    /// One bit per element: its sign.
    OneBit,
    /// Two bits per element: negative, near zero, positive.
    TwoBit,
    /// The largest elements, each as index and value.
    TopK,
    /// Elements drawn by a seed that all ranks share, so that only values travel.
    RandomK,
}

impl Scheme {
    /// Every scheme.
    pub const ALL: [Self; 5] = [Self::Half, Self::OneBit, Self::TwoBit, Self::TopK, Self::RandomK];

    /// The word for text and files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Half => "half",
            Self::OneBit => "one-bit",
            Self::TwoBit => "two-bit",
            Self::TopK => "top-k",
            Self::RandomK => "random-k",
        }
    }

    /// The scheme of a word, common spellings included.
    ///
    /// # Errors
    /// If there is none; names those that exist.
    pub fn parse(word: &str) -> Result<Self> {
        let plain = word.to_ascii_lowercase().replace(['_', ' '], "-");
        Ok(match plain.as_str() {
            "half" | "fp16" | "bf16" | "float16" | "bfloat16" => Self::Half,
            "one-bit" | "1-bit" | "1bit" | "onebit" => Self::OneBit,
            "two-bit" | "2-bit" | "2bit" | "twobit" => Self::TwoBit,
            "top-k" | "topk" => Self::TopK,
            "random-k" | "randomk" => Self::RandomK,
            _ => {
                let words = Self::ALL.map(Self::as_str);
                let error = InputError::new(format!("no compression scheme \"{word}\""));
                return Err(match suggest::nearest(word, words) {
                    Some(near) => error.hint(format!("did you mean \"{near}\"?")),
                    None => error.hint(format!("schemes: {}", words.join(", "))),
                });
            }
        })
    }

    /// Whether sums of encoded gradients are encoded sums, so that an all-reduce can add them on
    /// the way. Others must be decoded before they are added.
    pub const fn sums_encoded(self) -> bool {
        matches!(self, Self::Half | Self::RandomK)
    }
}

/// A scheme and how much of a float32 gradient it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Codec {
    /// How.
    pub scheme: Scheme,
    /// Encoded size over original size.
    pub ratio: f64,
}

impl Codec {
    /// A scheme that keeps `kept` of the elements (only top-k and random-k choose): float32
    /// gradients become a half, 1/32, 1/16, `2 x kept` (index and value) or `kept`.
    pub fn new(scheme: Scheme, kept: f64) -> Self {
        let ratio = match scheme {
            Scheme::Half => 0.5,
            Scheme::OneBit => 1.0 / 32.0,
            Scheme::TwoBit => 1.0 / 16.0,
            Scheme::TopK => 2.0 * kept,
            Scheme::RandomK => kept,
        };
        Self { scheme, ratio: ratio.clamp(0.0, 2.0) }
    }

    /// What is sent of so many bytes.
    pub fn wire_bytes(&self, bytes: Bytes) -> Bytes {
        Bytes::new((bytes.as_f64() * self.ratio).ceil() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_of_float32_gradients() {
        let of = |scheme| Codec::new(scheme, 0.01).wire_bytes(Bytes::new(3_200)).get();
        let sizes = Scheme::ALL.map(of);
        assert_eq!(sizes, [1_600, 100, 200, 64, 32]);
    }

    #[test]
    fn spellings() {
        assert_eq!(Scheme::parse("FP16").unwrap(), Scheme::Half);
        assert_eq!(Scheme::parse("1-bit").unwrap(), Scheme::OneBit);
        for scheme in Scheme::ALL {
            assert_eq!(Scheme::parse(scheme.as_str()).unwrap(), scheme);
        }
        assert!(Scheme::parse("zip").unwrap_err().hints()[0].contains("half"));
    }
}
