//! Buffers that lie in memory and in no cache.

/// Room that is walked through buffer by buffer, so that a buffer has long left the caches when it
/// comes again.
pub(crate) struct Pool<T> {
    items: Vec<T>,
    at: usize,
}

/// Bytes of a pool at least: twice the last-level cache that a core of a large server has.
const SMALLEST: usize = 64 << 20;

impl<T: Copy> Pool<T> {
    /// A pool for buffers of up to `bytes`, filled with `pattern` again and again, so that its
    /// pages exist. The pattern is neither empty nor longer.
    pub(crate) fn new(bytes: usize, pattern: &[T]) -> Self {
        let wanted = bytes.max(SMALLEST).div_ceil(size_of::<T>());
        let mut items = pattern.to_vec();
        while items.len() < wanted {
            items.extend_from_within(..items.len().min(wanted - items.len()));
        }
        Self { items, at: 0 }
    }

    /// The next buffer of so many items, which are no more than the pool was made for.
    pub(crate) fn next(&mut self, items: usize) -> &mut [T] {
        if self.items.len() - self.at < items {
            self.at = 0;
        }
        let start = self.at;
        self.at += items;
        &mut self.items[start..start + items]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_follow_one_another_and_begin_again() {
        let mut pool = Pool::new(0, &[1_u8, 2, 3]);
        let third = SMALLEST / 3 + 1;
        assert_eq!(pool.next(third)[..4], [1, 2, 3, 1]);
        let second = pool.next(third).as_ptr();
        assert_eq!(pool.next(third)[0], 1, "too little is left");
        assert_eq!(pool.next(third).as_ptr(), second);
        assert_eq!(
            Pool::new(SMALLEST + 4, &[0.5_f32]).next(SMALLEST / 4 + 1).len(),
            SMALLEST / 4 + 1
        );
    }
}
