//! Convolutions as the matrix products that libraries make of them.

use super::operation::{Convolution, Gemm, Pass};

impl Convolution {
    /// The product that the convolution comes to, one per group: places by outputs forward, places
    /// by inputs for the gradient of the input, outputs by filter for that of the filter.
    pub fn as_gemm(&self) -> Gemm {
        let groups = self.groups.max(1);
        let (inputs, outputs) = (self.inputs.div_ceil(groups), self.outputs.div_ceil(groups));
        let filter = self.kernel.0.saturating_mul(self.kernel.1);
        let places = self.batch.saturating_mul(self.size.0).saturating_mul(self.size.1);
        let (m, n, k) = match self.pass {
            Pass::Forward => (places, outputs, inputs.saturating_mul(filter)),
            // Places of the input are more than those of the result, but only every so many of the
            // filter's taps meet one: the product of both stays.
            Pass::Backward => (places, inputs, outputs.saturating_mul(filter)),
            Pass::WeightGradient => (outputs, inputs.saturating_mul(filter), places),
        };
        Gemm { batch: groups, m, n, k, dtype: self.dtype, output: self.dtype }
    }

    /// Whether channels mix so little that it is done without matrix units.
    pub(super) fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.inputs.max(self.outputs) / self.groups < 8
    }
}
