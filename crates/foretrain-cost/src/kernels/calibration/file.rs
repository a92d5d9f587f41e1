//! Calibrations as files: TOML with a version, refused unless every figure can be used.

use foretrain_core::{InputError, Result};
use foretrain_hardware::parse_toml;

use super::KernelCalibration;

pub(super) const FORMAT: &str = "foretrain-kernels";
pub(super) const VERSION: u32 = 1;
/// Longer files are refused unread; ours have some hundred bytes.
const MOST_BYTES: usize = 1 << 20;
const HINT: &str = "such files are written by foretrain calibrate kernels";

impl KernelCalibration {
    /// Reads a file's text.
    ///
    /// # Errors
    /// If it is no such file, of another version, or a figure in it cannot be used; with the place.
    pub fn read(text: &str) -> Result<Self> {
        if text.len() > MOST_BYTES {
            let found = text.len();
            let why = format!("{found} bytes are no calibration: they have at most {MOST_BYTES}");
            return Err(InputError::new(why).hint(HINT));
        }
        let file: Self = parse_toml(text).map_err(|error| error.hint(HINT))?;
        file.check()?;
        Ok(file)
    }

    /// The file's text, with these lines as its head.
    pub fn text(&self, comment: &[String]) -> String {
        let mut text: String = comment.iter().map(|line| format!("# {line}\n")).collect();
        // Written by hand: two scalars and a list of flat tables need no serialiser, and figures
        // keep as many digits as they are worth.
        let quoted = |value: &str| toml_string(value);
        text += &format!("format = \"{FORMAT}\"\nversion = {VERSION}\n");
        text += &format!("device = {}\nsource = {}\n", quoted(&self.device), quoted(&self.source));
        for product in &self.products {
            text += &format!(
                "\n[[products]]\nof = \"{}\"\nfactor = {:.5}\noffset_us = {:.3}\nspread = {:.4}\nrows = {}\n",
                product.of.as_str(),
                product.factor,
                product.offset_us,
                product.spread,
                product.rows
            );
        }
        text
    }

    fn check(&self) -> Result<()> {
        if self.format != FORMAT {
            let why = format!("expected \"{FORMAT}\", found \"{}\"", self.format);
            return Err(InputError::new(why).at("format").hint(HINT));
        }
        if self.version != VERSION {
            let why = format!("version {}; this Foretrain reads version {VERSION}", self.version);
            return Err(InputError::new(why).at("version").hint(HINT));
        }
        if self.products.is_empty() {
            return Err(InputError::new("the file corrects nothing").at("products").hint(HINT));
        }
        for product in &self.products {
            let at = |key: &str| format!("products.{} of \"{}\"", key, product.of.as_str());
            if !(0.01..=100.0).contains(&product.factor) {
                let why = format!("a factor of {} is no correction", product.factor);
                return Err(InputError::new(why).at(at("factor")).hint("expected 0.01 to 100"));
            }
            if !(-1e3..=1e3).contains(&product.offset_us) {
                let why = format!("an offset of {} us is no kernel's", product.offset_us);
                return Err(InputError::new(why)
                    .at(at("offset_us"))
                    .hint("expected -1000 to 1000"));
            }
            if !(0.0..=5.0).contains(&product.spread) {
                let why = format!("a spread of {} is none", product.spread);
                return Err(InputError::new(why).at(at("spread")).hint("expected 0 to 5"));
            }
        }
        Ok(())
    }
}

/// A basic string of TOML.
fn toml_string(value: &str) -> String {
    let mut text = String::from("\"");
    for letter in value.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            letter if letter.is_control() => text.push(' '),
            letter => text.push(letter),
        }
    }
    text + "\""
}
