//! Every way to write down a secret that is hidden, and what that costs.

use std::time::{Duration, Instant};

use super::*;

const TOKEN: &str = "ghs_16C7e42F292c6912E7/x+y";

fn base64(text: &str, alphabet: &[u8; 64]) -> String {
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bytes = [chunk[0], *chunk.get(1).unwrap_or(&0), *chunk.get(2).unwrap_or(&0)];
        let whole = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
        for at in 0..4 {
            match at <= chunk.len() {
                true => out.push(char::from(alphabet[(whole >> (18 - at * 6)) as usize & 63])),
                false => out.push('='),
            }
        }
    }
    out
}

#[track_caller]
fn check_hidden(text: &str) {
    let hidden = EncodedSecret::new(TOKEN).unwrap().hide(text, "***");
    assert!(hidden.contains("***"), "{text} became {hidden}");
    for part in TOKEN.as_bytes().windows(12) {
        assert!(!hidden.contains(std::str::from_utf8(part).unwrap()), "{hidden}");
    }
}

#[test]
fn every_encoded_form_is_hidden() {
    check_hidden(TOKEN);
    check_hidden(&format!("a {TOKEN}, b"));
    check_hidden(&TOKEN.chars().rev().collect::<String>());
    for before in ["", "x", "xy", "xyz", "token=", "user:"] {
        for after in ["", "\n", "ab", "abc"] {
            for alphabet in [STANDARD, URL_SAFE] {
                let text = base64(&format!("{before}{TOKEN}{after}"), alphabet);
                check_hidden(&text);
                check_hidden(text.trim_end_matches('='));
            }
        }
    }
    let hex: String = TOKEN.bytes().map(|byte| format!("{byte:02x}")).collect();
    check_hidden(&hex);
    check_hidden(&hex.to_uppercase());
    let spaced: Vec<String> = TOKEN.bytes().map(|byte| format!("{byte:02X}")).collect();
    for separator in [" ", ":", "%", "\\x"] {
        check_hidden(&format!("{separator}{}", spaced.join(separator)));
    }
    check_hidden(&percent_encoded(TOKEN));
    check_hidden(&percent_encoded(TOKEN).to_uppercase());
}

#[test]
fn short_secrets_are_not_searched_for() {
    assert!(EncodedSecret::new("abc").is_none() && EncodedSecret::new(" 12345 ").is_none());
    let short = EncodedSecret::new("hunter2").unwrap();
    assert_eq!(short.hide("hunter2 2retnuh", "***"), "*** 2retnuh");
    assert_eq!(short.hide("nothing here", "***"), "nothing here");
}

#[test]
fn padding_goes_with_the_secret_and_text_around_it_stays() {
    let secret = EncodedSecret::new("0123456789").unwrap();
    assert_eq!(secret.hide("a MDEyMzQ1Njc4OQ== b", "***"), "a *** b");
    assert!(secret.is_in("x9876543210y") && !secret.is_in("012345"));
}

#[test]
fn a_secret_that_begins_like_padding_is_hidden_twice_in_a_row() {
    let secret = EncodedSecret::new("=abcdefg").unwrap();
    assert_eq!(secret.hide("=abcdefg=abcdefg.", "***"), "******.");
    let secret = EncodedSecret::new("======").unwrap();
    assert_eq!(secret.hide(&"=".repeat(19), "***"), "*********");
}

/// A secret in every encoding that is searched for.
fn encodings(secret: &str) -> Vec<String> {
    let hex = |separator: &str| {
        let bytes: Vec<String> = secret.bytes().map(|byte| format!("{byte:02X}")).collect();
        bytes.join(separator)
    };
    let mut texts = vec![secret.to_owned(), secret.chars().rev().collect()];
    texts.extend([json_escaped(secret), percent_encoded(secret)]);
    texts.extend([base64(secret, STANDARD), base64(secret, URL_SAFE)]);
    texts.extend(["", ":", " "].map(hex));
    texts
}

proptest::proptest! {
    #[test]
    fn any_secret_is_hidden_in_any_text(
        secret in "\\PC{6,20}|[=%\\\\\"/+ a\u{e9}\u{1}]{6,16}|[^*]{6,12}",
        between in "[= a\n%\\\\]{0,4}",
        order in proptest::collection::vec((0_usize..9, 1_usize..4), 1..8),
    ) {
        let secret = secret.trim().replace('*', "x");
        let Some(encoded) = EncodedSecret::new(&secret) else { return Ok(()) };
        let forms = encodings(&secret);
        let mut text = between.clone();
        for (form, times) in order {
            text.push_str(&forms[form].repeat(times));
            text.push_str(&between);
        }
        let hidden = encoded.hide(&text, "***");
        proptest::prop_assert!(!hidden.contains(&secret), "{text:?} became {hidden:?}");
        proptest::prop_assert!(!encoded.is_in(&hidden), "{text:?} became {hidden:?}");
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn in_lines(text: &str, columns: usize, line_break: &str) -> String {
    let lines: Vec<&[u8]> = text.as_bytes().chunks(columns).collect();
    lines.join(line_break.as_bytes()).escape_ascii().to_string().replace("\\n", "\n")
}

fn column_of_characters(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' }).collect()
}

fn xxd(bytes: &[u8]) -> String {
    let lines = bytes.chunks(16).enumerate().map(|(at, line)| {
        let groups: Vec<String> = line.chunks(2).map(hex).collect();
        format!("{:08x}: {:39}  {}\n", at * 16, groups.join(" "), column_of_characters(line))
    });
    lines.collect()
}

fn hexdump_canonical(bytes: &[u8]) -> String {
    let lines = bytes.chunks(16).enumerate().map(|(at, line)| {
        let halves: Vec<String> = line
            .chunks(8)
            .map(|half| half.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "))
            .collect();
        format!("{:08x}  {:48}  |{}|\n", at * 16, halves.join("  "), column_of_characters(line))
    });
    lines.collect()
}

/// As `hexdump` and `od -x` write it: numbers of two bytes, the low one first.
fn hexdump_of_words(bytes: &[u8]) -> String {
    let word = |pair: &[u8]| format!("{:02x}{:02x}", pair.get(1).unwrap_or(&0), pair[0]);
    let lines = bytes.chunks(16).enumerate().map(|(at, line)| {
        let words: Vec<String> = line.chunks(2).map(word).collect();
        format!("{:07x} {}\n", at * 16, words.join(" "))
    });
    lines.collect()
}

fn numbered(text: &str) -> String {
    text.lines().enumerate().map(|(at, line)| format!("{:6}\t{line}\n", at + 1)).collect()
}

fn spread(text: &str, separator: &str) -> String {
    text.chars().map(|c| c.to_string()).collect::<Vec<_>>().join(separator)
}

fn hex_with(text: &str, before: &str, separator: &str) -> String {
    let bytes: Vec<String> = text.bytes().map(|byte| format!("{before}{byte:02x}")).collect();
    bytes.join(separator)
}

/// The ways to write down a secret, each with its name.
fn ways(secret: &str) -> Vec<(String, String)> {
    let reversed: String = secret.chars().rev().collect();
    let around = format!("GITHUB_TOKEN={secret}\nHOME=/root\n");
    let encoded = base64(&around, STANDARD);
    let wide: String = around.chars().flat_map(|c| [c, '\0']).collect();
    let mut ways: Vec<(String, String)> = [
        ("the reversed secret in Base64", base64(&reversed, STANDARD)),
        ("Base64 read from the end", base64(secret, STANDARD).chars().rev().collect()),
        ("Base64 of Base64", base64(&base64(secret, STANDARD), STANDARD)),
        ("Base64 of wrapped Base64", base64(&in_lines(&encoded, 20, "\n"), STANDARD)),
        ("Base64 of Base64 of Base64", base64(&base64(&encoded, URL_SAFE), STANDARD)),
        ("Base64 of hex", base64(&hex(secret.as_bytes()), STANDARD)),
        ("hex of Base64", hex(encoded.as_bytes())),
        ("Base64 of UTF-16", base64(&wide, STANDARD)),
        ("Base64 in capitals", base64(secret, STANDARD).to_uppercase()),
        ("hex of the reversed secret", hex(reversed.as_bytes())),
        ("xxd", xxd(around.as_bytes())),
        ("xxd in a quotation", xxd(around.as_bytes()).replace("000000", "> 000000")),
        ("xxd of Base64", xxd(encoded.as_bytes())),
        ("Base64 of xxd", base64(&xxd(around.as_bytes()), STANDARD)),
        ("hexdump -C", hexdump_canonical(around.as_bytes())),
        ("hexdump", hexdump_of_words(around.as_bytes())),
        ("hexdump without offsets", hexdump_of_words(around.as_bytes()).replace("00000", "")),
        ("xxd -p", in_lines(&hex(around.as_bytes()), 60, "\n")),
        ("lines with numbers", numbered(&in_lines(secret, 8, "\n"))),
        ("Base64 in lines with numbers", numbered(&in_lines(&encoded, 16, "\n"))),
        ("escapes of JavaScript", hex_with(secret, "\\u00", "")),
        ("escapes with braces", hex_with(secret, "\\u{", "}")),
        ("wide escapes", hex_with(secret, "\\U000000", "")),
        ("an array of C", hex_with(secret, "0x", ",")),
        ("words of C", format!("0x{}", in_lines(&hex(secret.as_bytes()), 8, ", 0x"))),
        ("entities", hex_with(secret, "&#x", ";")),
        (
            "UTF-16 in hex",
            hex(secret.chars().flat_map(|c| [c, '\0']).collect::<String>().as_bytes()),
        ),
    ]
    .map(|(name, text)| (name.to_owned(), text))
    .into();
    for separator in [" ", "-", ":", ",", ", ", ".", "\n", "\u{a0}", "·", "\" + \""] {
        for (name, form) in [
            ("plain", secret),
            ("reversed", &reversed),
            ("Base64", &base64(secret, STANDARD)),
            ("the other Base64", &base64(secret, URL_SAFE)),
            ("Base64 after text", &encoded),
            ("hex", &hex(secret.as_bytes())),
        ] {
            ways.push((format!("{name}, each by {separator:?}"), spread(form, separator)));
            for columns in [4, 7] {
                let text = in_lines(form, columns, "\n").replace('\n', separator);
                ways.push((format!("{name}, {columns} by {separator:?}"), text));
            }
        }
    }
    ways
}

#[test]
fn no_way_to_write_down_a_secret_shows_it() {
    let mut failed = Vec::new();
    for secret in [TOKEN, "ghs_Ab12Cd34Ef56Gh78", "AKIAIOSFODNN7EXAMPLE", "p4ss-w0rd/with+more=12"]
    {
        let known = EncodedSecret::new(secret).unwrap();
        for (name, text) in ways(secret) {
            let text = format!("It is:\n{text}\nThat was it.");
            let hidden = known.hide(&text, "***");
            let is_kept = hidden.starts_with("It is:\n") && hidden.ends_with("That was it.");
            let digits = |text: &str| text.bytes().filter(u8::is_ascii_alphanumeric).count();
            let rest = digits(&hidden);
            // Of the digits, only those of other text may be left.
            let is_shown = !hidden.contains("***") || rest * 4 > digits(&text) * 3 + 120;
            if is_shown || !is_kept || known.is_in(&hidden) {
                failed.push(format!("{name}: {text:?} became {hidden:?}"));
            }
        }
    }
    assert!(failed.is_empty(), "{}:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn the_column_of_characters_of_a_dump_shows_no_part_of_a_secret() {
    let known = EncodedSecret::new(TOKEN).unwrap();
    for dump in [xxd, hexdump_canonical] {
        let hidden = known.hide(&dump(format!("TOKEN={TOKEN}\n").as_bytes()), "***");
        assert!(!hidden.contains("2F29") && !hidden.contains("E7/x"), "{hidden}");
    }
}

#[test]
fn a_secret_that_a_removal_would_join_is_hidden_too() {
    let known = EncodedSecret::new("ghs_Ab12Cd34Ef56Gh78").unwrap();
    let nested = (0..40).fold(String::new(), |inner, _| format!("ghs_Ab12C{inner}d34Ef56Gh78"));
    let hidden = known.hide(&nested, "***");
    assert!(!known.is_in(&hidden) && !hidden.contains("Ab12"), "{hidden}");
}

#[test]
fn text_that_is_like_a_short_secret_stays() {
    for (secret, text) in [
        ("testtest", "the latest testing of late st test"),
        ("abcdef", "ab cdef, a-b-c-d-e-f"),
        ("hunter2", "h u n t e r 2"),
        ("12345678", "at 0:12:34.5678, 91 2345 6789"),
        ("decade", "a decayed facade is added: de-ca-de"),
    ] {
        let known = EncodedSecret::new(secret).unwrap();
        assert_eq!(known.hide(text, "***"), text);
    }
}

/// The search as it was before there were views: each form is replaced on its own.
fn hide_by_forms(secret: &str, text: &str) -> String {
    let mut exact = vec![secret.to_owned(), secret.chars().rev().collect(), json_escaped(secret)];
    for alphabet in [STANDARD, URL_SAFE] {
        exact.extend((0..3).flat_map(|offset| base64_at(secret.as_bytes(), offset, alphabet)));
    }
    let separated = [("", ""), ("", ":"), ("", " "), ("\\x", "\\x"), ("0x", ", 0x"), ("%", "%")];
    let hex =
        separated.map(|(before, separator)| format!("{before}{}", hex_with(secret, "", separator)));
    let mut out = text.to_owned();
    for form in exact {
        if Finder::new(&form).find_iter(out.as_bytes()).next().is_none() {
            out = out.clone();
        }
    }
    for form in hex.into_iter().chain([percent_encoded(secret)]) {
        let lower = out.to_ascii_lowercase();
        if Finder::new(&form).find_iter(lower.as_bytes()).next().is_none() {
            out = out.clone();
        }
    }
    out
}

/// Returns the shortest of several times of each, taken in turns.
fn times_of(
    mut first: impl FnMut() -> String,
    mut second: impl FnMut() -> String,
) -> [Duration; 2] {
    let mut shortest = [Duration::MAX; 2];
    let mut runs: [&mut dyn FnMut() -> String; 2] = [&mut first, &mut second];
    for _ in 0..9 {
        for (run, shortest) in runs.iter_mut().zip(&mut shortest) {
            let start = Instant::now();
            std::hint::black_box(run());
            *shortest = start.elapsed().min(*shortest);
        }
    }
    shortest
}

/// Ordinary texts of a MiB each, with their names.
fn ordinary_texts() -> [(&'static str, String); 4] {
    let prose = include_str!("../../../../docs/security.md");
    let code = include_str!("../secrets.rs");
    let to_a_mib = |text: &str| text.repeat((1 << 20) / text.len() + 1);
    let log: String = (0..12_000_u64)
        .map(|at| {
            format!(
                "2026-01-{:02}T10:{:02}:07Z INFO GET /item/{at} took {} ms, {:016x}\n",
                at % 28,
                at % 60,
                at * 7,
                at * 0x9e37_79b9
            )
        })
        .collect();
    [
        ("prose", to_a_mib(prose)),
        ("code", to_a_mib(code)),
        ("a log", to_a_mib(&log)),
        ("numbered code", to_a_mib(&numbered(code))),
    ]
}

#[test]
fn a_mib_of_ordinary_text_costs_about_as_much_as_a_search_for_each_form() {
    let known = EncodedSecret::new(TOKEN).unwrap();
    for (name, text) in ordinary_texts() {
        assert!(!known.is_in(&text));
        let (mut before, mut now) = (Duration::ZERO, Duration::ZERO);
        // Parts that take less time than the machine gives a program in one go.
        for part in text.as_bytes().chunks(1 << 15).map(String::from_utf8_lossy) {
            let [by_forms, by_views] =
                times_of(|| hide_by_forms(TOKEN, &part), || known.hide(&part, "***"));
            before += by_forms;
            now += by_views;
        }
        println!("{name}: {before:?} by forms, {now:?} by views");
        assert!(now < before * 8, "{name}: {before:?} by forms, {now:?} by views");
    }
}

#[test]
fn hostile_text_is_searched_in_linear_time() {
    let known = EncodedSecret::new("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").unwrap();
    for text in ["a", "QUFB", "Uw==\n", "61", "0000: 6161 6161\n", "YWFhYWFhYWFhYWFh ", "u000x"] {
        let small = text.repeat((1 << 17) / text.len());
        let large = text.repeat((1 << 19) / text.len());
        let [few, many] = times_of(|| known.hide(&small, "*"), || known.hide(&large, "*"));
        println!("{text:?}: {few:?}, {many:?}");
        assert!(many < few * 16 + Duration::from_millis(50), "{text:?}: {few:?}, {many:?}");
    }
}
