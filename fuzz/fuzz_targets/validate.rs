#![no_main]

use gardener_resource_manager_fuzz::{checks::validate::check, mutate::mutate_validated};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_target!(|input: &[u8]| check(input));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate_validated(data, size, max_size, seed)
});
