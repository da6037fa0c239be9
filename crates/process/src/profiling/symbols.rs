//! Names of addresses, for tools without a copy of the program.

use std::{ffi::c_void, fmt::Write as _, ptr};

use actix_web::{HttpRequest, HttpResponse, web};

use super::plain;

/// No tool asks for more at once.
const MOST_ADDRESSES: usize = 10_000;

pub(super) async fn of_query(request: HttpRequest) -> HttpResponse {
    let query = request.query_string().to_owned();
    answer(query).await
}

pub(super) async fn of_body(body: String) -> HttpResponse {
    answer(body).await
}

async fn answer(addresses: String) -> HttpResponse {
    // The first lookup reads the program's file.
    plain(web::block(move || names(&addresses)).await.unwrap_or_default())
}

/// The first line says that names are available; then a line for each address with a name.
fn names(addresses: &str) -> String {
    let mut text = String::from("num_symbols: 1\n");
    for address in addresses.split(['+', ' ', '\n']).take(MOST_ADDRESSES) {
        let digits = address.trim().trim_start_matches("0x");
        let Ok(address) = usize::from_str_radix(digits, 16) else { continue };
        if let Some(name) = name_of(address) {
            let _ = writeln!(text, "{address:#x} {name}"); // writing into a String cannot fail
        }
    }
    text
}

pub(super) fn name_of(address: usize) -> Option<String> {
    let mut name = None;
    // The library expects a return address and looks one before it.
    backtrace::resolve(ptr::with_exposed_provenance_mut::<c_void>(address.wrapping_add(1)), |symbol| {
        name = name.take().or_else(|| symbol.name().map(|name| format!("{name:#}")));
    });
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 70 §9.3
    #[test]
    fn the_name_of_a_function_is_found_by_its_address() {
        let address = names as *const () as usize;

        let text = names(&format!("0x1+{address:#x}+nonsense"));

        assert!(text.starts_with("num_symbols: 1\n"), "{text}");
        assert!(text.contains(&format!("{address:#x} ")) && text.contains("symbols::names"), "{text}");
        assert_eq!(text.lines().count(), 2, "{text}");
    }
}
