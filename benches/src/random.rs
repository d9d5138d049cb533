//! Random numbers that cost next to nothing and are the same in every run, on every system.

/// Marsaglia's xorshift, which has every number but 0 in its way.
pub(crate) struct Random(u64);

impl Random {
    /// The sequence that belongs to `seed`.
    pub(crate) fn new(seed: u64) -> Random {
        // Spreads small seeds over all bits, and never gives 0 for one.
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// The next number, of 32 bits: the upper half, which is the better one.
    pub(crate) fn next_u32(&mut self) -> u32 {
        (self.next() >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_for_one_seed_and_others_for_another() {
        let first = |seed| {
            let mut random = Random::new(seed);
            [(); 4].map(|()| random.next_u32())
        };
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
        assert_ne!(first(0), [0; 4]);
    }
}
