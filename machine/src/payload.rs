//! Data of payments, as clients might send it: for loads, demos, benchmarks and tests.
//!
//! The cost of a payment depends on how well its data compresses. So there are kinds of data, from
//! a random source, and every text has exactly the requested size.

use std::fmt::Write as _;
use std::str::FromStr;
use std::sync::LazyLock;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use fastrand::Rng;
use serde_json::Value;

/// A kind of data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum DataKind {
    /// The lines of an invoice: names of fields repeat, values vary.
    #[default]
    Structured,
    /// Transfers with UUIDs and IBANs: most of it is random.
    Dense,
    /// English words.
    Prose,
    /// Random bytes in base64, as of a signed or encrypted document.
    Base64,
    /// A reference of at most 200 bytes, whatever size was asked for.
    Small,
    /// A text in which all bytes that UTF-8 permits are about equally frequent: hardly anything can be saved.
    Incompressible,
}

/// The most bytes of [`DataKind::Small`].
const SMALL: usize = 200;

const DESCRIPTIONS: [&str; 12] = [
    "spare parts",
    "delivery",
    "office rent",
    "cleaning of offices",
    "licence for a year",
    "paper and toner",
    "repair of a machine",
    "electricity",
    "insurance",
    "training course",
    "consulting",
    "freight",
];

/// Frequent words, the most frequent first.
const WORDS: &str = "the of and to in a is that for it as was with be by on not he his but at are this have from or \
    had an they which one you were all her she there would their we him been has when who will no more if out so up \
    said what its about than into them can only other time new some could these two may first then do any like my now \
    over such our man me even most made after also did many off before must well back through years much where your \
    way down should because long each just state those people too mister how little good world make very year still \
    see work life men never being day under another while against know place water country part few again old great \
    hand high right small think went came himself during without house used number public around less got against \
    school between payment invoice account contract quarter delivery supplier customer agreed amount reference \
    received confirm following weeks regarding balance outstanding interest discount attached original signed copy \
    department office street building morning letter answer question different family company business problem \
    important national several possible system program question government social service children power present \
    although whether within perhaps nothing something interest almost become general certain process result matter \
    local period history whole usually kind light early open money areas control reason morning remember education \
    experience especially development information community department understand difference performance";

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

impl DataKind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Structured, Self::Dense, Self::Prose, Self::Base64, Self::Small, Self::Incompressible];

    /// The kind's name, as an option's value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Structured => "structured",
            Self::Dense => "dense",
            Self::Prose => "prose",
            Self::Base64 => "base64",
            Self::Small => "small",
            Self::Incompressible => "incompressible",
        }
    }

    /// Returns a JSON text of exactly so many bytes, and of at least 2.
    pub fn text(self, random: &mut Rng, bytes: usize) -> String {
        let bytes = bytes.max(2);
        match self {
            Self::Structured => records(random, bytes, line_of_invoice),
            Self::Dense => records(random, bytes, transfer),
            Self::Prose => string(random, bytes, prose),
            Self::Base64 => string(random, bytes, base64),
            Self::Small => records(random, bytes.min(SMALL), reference),
            Self::Incompressible => string(random, bytes, even_bytes),
        }
    }

    /// Returns the same as a JSON value.
    pub fn value(self, random: &mut Rng, bytes: usize) -> Value {
        // A test reads texts of every kind and size.
        serde_json::from_str(&self.text(random, bytes)).unwrap_or_default()
    }
}

impl FromStr for DataKind {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let kind = Self::ALL.into_iter().find(|kind| kind.name() == text);
        kind.with_context(|| format!("{text:?} is not a kind of data; give {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// Returns an object with a list of records and a memo, which fills it up.
fn records(random: &mut Rng, bytes: usize, record: fn(&mut Rng, &mut String, usize)) -> String {
    const BEGIN: &str = r#"{"lines":["#;
    const MIDDLE: &str = r#"],"memo":""#;
    const END: &str = r#""}"#;
    let Some(most) = bytes.checked_sub(MIDDLE.len() + END.len()).filter(|most| *most >= BEGIN.len()) else {
        return string(random, bytes, prose);
    };
    let mut text = String::with_capacity(bytes + 256);
    text.push_str(BEGIN);
    for number in 1.. {
        let end = text.len();
        if number > 1 {
            text.push(',');
        }
        record(random, &mut text, number);
        if text.len() > most {
            text.truncate(end);
            break;
        }
    }
    text.push_str(MIDDLE);
    prose(random, &mut text, bytes - END.len());
    text.push_str(END);
    text
}

/// Returns a JSON string that `fill` fills up to a length.
fn string(random: &mut Rng, bytes: usize, fill: fn(&mut Rng, &mut String, usize)) -> String {
    let mut text = String::with_capacity(bytes + 16);
    text.push('"');
    fill(random, &mut text, bytes - 1);
    text.push('"');
    text
}

fn line_of_invoice(random: &mut Rng, text: &mut String, number: usize) {
    let (quantity, price) = (random.u32(1..=20), random.u32(1..=400) * 25);
    let (description, article) = (DESCRIPTIONS[random.usize(..DESCRIPTIONS.len())], random.u16(1_000..=1_999));
    let vat = if random.u8(..10) < 8 { 20 } else { 5 };
    let total = quantity * price;
    // Writing to a String does not fail.
    let _ = write!(
        text,
        r#"{{"line":{number},"article":"A-{article}","description":"{description}","quantity":{quantity},"unitPriceMinor":{price},"vatPercent":{vat},"totalMinor":{total}}}"#
    );
}

fn transfer(random: &mut Rng, text: &mut String, _: usize) {
    let (high, low) = (random.u64(..), random.u64(..));
    let uuid = format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        0x8000 | (low >> 50),
        low & 0xffff_ffff_ffff
    );
    let mut iban = |country: &str, digits: usize| {
        let mut iban = format!("{country}{:02}", random.u8(2..=98));
        (0..digits).for_each(|_| iban.push(char::from(b'0' + random.u8(..10))));
        iban
    };
    let (debtor, creditor) = (iban("DE", 18), iban("FR", 23));
    let amount = random.u32(1..=10_000_000);
    let _ = write!(text, r#"{{"id":"{uuid}","from":"{debtor}","to":"{creditor}","amount":{amount}}}"#);
}

fn reference(random: &mut Rng, text: &mut String, _: usize) {
    let _ = write!(text, r#"{{"invoice":"RE-{}"}}"#, random.u32(100_000..1_000_000));
}

/// Appends words until the text has this length.
fn prose(random: &mut Rng, text: &mut String, until: usize) {
    static LIST: LazyLock<Vec<&str>> = LazyLock::new(|| WORDS.split_ascii_whitespace().collect());
    while text.len() < until {
        // Frequent words are chosen more often.
        let most = random.usize(1..=LIST.len());
        text.push_str(LIST[random.usize(..most)]);
        text.push_str(if random.u8(..12) == 0 { ", " } else { " " });
    }
    text.truncate(until);
}

fn base64(random: &mut Rng, text: &mut String, until: usize) {
    while text.len() < until {
        let bits = random.u64(..);
        // Ten digits of six bits.
        (0..10).for_each(|digit| text.push(char::from(BASE64[usize::from((bits >> (6 * digit)) as u8 & 63)])));
    }
    text.truncate(until);
}

/// Appends characters of one, two and three bytes, so that each first byte is equally frequent, and the later bytes are
/// about as frequent as these.
fn even_bytes(random: &mut Rng, text: &mut String, until: usize) {
    while text.len() < until {
        let room = until - text.len();
        let character = match random.u32(..93 + 29 + 12) {
            first @ 93..122 if room >= 2 => char::from_u32(((first - 93 + 3) << 6) | random.u32(..64)),
            first @ 122.. if room >= 3 => char::from_u32(((first - 122 + 1) << 12) | random.u32(..1 << 12)),
            _ => Some(char::from(random.u8(b' '..=b'~'))),
        };
        text.extend(character.filter(|character| !matches!(character, '"' | '\\')));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_json_of_exactly_the_size() {
        for kind in DataKind::ALL {
            for bytes in (2..400).chain([1_000, 2_048, 4_096, 7_907, 8_192]) {
                for seed in 0..4 {
                    let text = kind.text(&mut Rng::with_seed(seed), bytes);
                    let want = if kind == DataKind::Small { bytes.min(SMALL) } else { bytes };
                    assert_eq!(text.len(), want, "{kind:?}, {bytes}: {text}");
                    serde_json::from_str::<Value>(&text).unwrap_or_else(|error| panic!("{kind:?}: {error}: {text}"));
                }
            }
        }
    }

    #[test]
    fn options_have_the_names_of_the_kinds() {
        for kind in DataKind::ALL {
            assert_eq!(kind.name().parse::<DataKind>().unwrap(), kind);
            assert_eq!(kind.to_possible_value().unwrap().get_name(), kind.name());
        }
        assert_eq!(DataKind::value_variants(), DataKind::ALL);
        assert!("x".parse::<DataKind>().unwrap_err().to_string().ends_with("small, incompressible"));
    }

    #[test]
    fn a_seed_determines_a_text_and_another_seed_another_one() {
        for kind in DataKind::ALL {
            let text = |seed| kind.text(&mut Rng::with_seed(seed), 500);
            assert_eq!(text(1), text(1));
            assert_ne!(text(1), text(2));
        }
    }
}
