//! Which links each flow uses, in compressed rows.

/// The links of many flows, row after row: link and share of the flow's rate.
#[derive(Clone, Debug)]
pub struct Paths {
    first: Vec<u32>,
    links: Vec<u32>,
    shares: Vec<f64>,
}

impl Default for Paths {
    fn default() -> Self {
        Self { first: vec![0], links: Vec::new(), shares: Vec::new() }
    }
}

impl Paths {
    /// No rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a row of links and what they carry of each unit of the flow. Shares that are not
    /// above zero are left out.
    ///
    /// # Panics
    /// If all rows together have more than 2^32 entries.
    pub fn push(&mut self, hops: impl IntoIterator<Item = (u32, f64)>) {
        for (link, share) in hops {
            if share > 0.0 {
                self.links.push(link);
                self.shares.push(share);
            }
        }
        let end = u32::try_from(self.links.len());
        self.first.push(end.expect("paths have fewer than 2^32 entries"));
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.first.len() - 1
    }
    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Entries of all rows together.
    pub fn entries(&self) -> usize {
        self.links.len()
    }

    /// One row: links and shares.
    pub fn of(&self, row: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = self.first[row] as usize..self.first[row + 1] as usize;
        let links = self.links[range.clone()].iter();
        links.zip(&self.shares[range]).map(|(&link, &share)| (link as usize, share))
    }

    /// Whether a row consists of just these hops.
    pub(crate) fn is_row(&self, row: usize, hops: &[(u32, f64)]) -> bool {
        let kept = hops.iter().filter(|(_, share)| *share > 0.0);
        self.of(row).eq(kept.map(|&(link, share)| (link as usize, share)))
    }

    /// The rows that use each link, with their shares.
    pub(crate) fn transposed(&self, links: usize) -> Self {
        let mut first = vec![0u32; links + 1];
        for &link in &self.links {
            first[link as usize + 1] += 1;
        }
        for link in 0..links {
            first[link + 1] += first[link];
        }
        let mut next = first.clone();
        let mut rows = vec![0u32; self.links.len()];
        let mut shares = vec![0.0; self.links.len()];
        for row in 0..self.len() {
            for (link, share) in self.of(row) {
                let at = next[link] as usize;
                next[link] += 1;
                (rows[at], shares[at]) = (row as u32, share);
            }
        }
        Self { first, links: rows, shares }
    }
}
