#![no_main]

use gardener_resource_manager_fuzz::checks::decode::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| check(input));
