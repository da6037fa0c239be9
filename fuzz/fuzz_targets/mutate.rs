#![no_main]

use gardener_resource_manager_fuzz::{
    checks::mutate::{Case, check},
    mutate::mutate,
};
use libfuzzer_sys::{Corpus, fuzz_mutator, fuzz_target};

fuzz_target!(|input: &[u8]| -> Corpus {
    match Case::try_from(input) {
        Ok(case) => {
            check(&case);
            Corpus::Keep
        }
        Err(_) => Corpus::Reject,
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| { mutate(data, size, max_size, seed) });
