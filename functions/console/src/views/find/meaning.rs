//! The meanings of a text that somebody looks for: ids, an account, an amount, a reference, a date.

use payments_model::{AccountId, BusinessDate, IdempotencyKey, PaymentId, Reference, TransactionId, TypedAmount};

/// The first digits of a payment's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Digits {
    /// The first eight.
    pub(super) first: u32,
    /// All that were given, in lower case.
    pub(super) text: String,
}

/// All that a text can mean.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Meanings {
    /// A payment, by its id in any spelling, by the id of an event of it, or by an address that has its id.
    pub(super) payment: Option<PaymentId>,
    pub(super) digits: Option<Digits>,
    /// The spellings of a transaction's id.
    pub(super) transactions: Vec<TransactionId>,
    /// The account of all the text, or of its first word.
    pub(super) account: Option<AccountId>,
    /// The words after an account.
    pub(super) within: Option<String>,
    pub(super) amount: Option<TypedAmount>,
    pub(super) reference: Option<Reference>,
    pub(super) key: Option<IdempotencyKey>,
    /// A date beside other words, or alone.
    pub(super) date: Option<BusinessDate>,
    /// The text without its quotes and its date.
    pub(super) text: String,
}

impl Digits {
    /// Reads eight or more of the first digits of an id, with the hyphens of the id after the eighth.
    fn parse(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let is_digits = text.bytes().enumerate().all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
        let first = u32::from_str_radix(text.get(..8)?, 16).ok()?;
        (is_digits && text.len() < 36).then_some(Self { first, text })
    }

    /// Whether a payment's id begins with them.
    pub(super) fn begin(&self, id: PaymentId) -> bool {
        id.to_string().starts_with(&self.text)
    }
}

impl Meanings {
    /// Reads a text as people copy and type it.
    pub(super) fn read(text: &str) -> Self {
        let text = unquoted(text.trim());
        let words: Vec<&str> = text.split_whitespace().collect();
        let date = words.iter().find_map(|word| word.parse::<BusinessDate>().ok());
        let is_date = |word: &&str| date.is_some_and(|date| date.to_string() == **word);
        let words: Vec<&str> = words.into_iter().filter(|word| !is_date(word)).collect();
        let text = unquoted(&words.join(" ")).to_owned();
        if let Some(payment) = payment_named(&text) {
            return Self {
                payment: Some(payment),
                transactions: spellings(&text),
                account: text.parse().ok(),
                // Many clients have UUIDs as their keys.
                key: text.parse().ok(),
                date,
                text,
                ..Self::default()
            };
        }
        let amount = text.parse().ok();
        let (mut account, mut within) =
            (text.parse().ok().or_else(|| account_of_path(&text)).or_else(|| iban(&words)), None);
        if account.is_none()
            && amount.is_none()
            && let [first, rest @ ..] = &words[..]
        {
            account = first.parse().ok();
            within = Some(unquoted(&rest.join(" ")).to_owned()).filter(|rest| account.is_some() && !rest.is_empty());
        }
        Self {
            payment: None,
            digits: Digits::parse(&text),
            transactions: spellings(&text),
            account,
            within,
            amount,
            reference: text.parse().ok(),
            key: text.parse().ok(),
            date,
            text,
        }
    }
}

/// A text without the quotes or brackets around it.
fn unquoted(text: &str) -> &str {
    const PAIRS: [(char, char); 10] = [
        ('"', '"'),
        ('\'', '\''),
        ('`', '`'),
        ('“', '”'),
        ('„', '“'),
        ('‘', '’'),
        ('«', '»'),
        ('<', '>'),
        ('(', ')'),
        ('[', ']'),
    ];
    let pair = |(begin, end): &(char, char)| text.strip_prefix(*begin)?.strip_suffix(*end);
    PAIRS.iter().find_map(pair).map_or(text, str::trim)
}

/// The payment whose id stands somewhere in a text, in any case: alone, in the id of an event, or in an address.
fn payment_named(text: &str) -> Option<PaymentId> {
    const LENGTH: usize = 36;
    let lower = text.to_ascii_lowercase();
    let is_hex =
        |place: Option<usize>| place.and_then(|place| lower.as_bytes().get(place)).is_some_and(u8::is_ascii_hexdigit);
    let part = |start: usize| {
        let id = lower.get(start..start + LENGTH)?.parse().ok()?;
        (!is_hex(start.checked_sub(1)) && !is_hex(Some(start + LENGTH))).then_some(id)
    };
    if let Some(id) = (0..lower.len()).find_map(part) {
        return Some(id);
    }
    let is_plain = lower.len() == 32 && lower.bytes().all(|byte| byte.is_ascii_hexdigit());
    let [a, b, c, d, e] = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| lower.get(range).unwrap_or_default());
    is_plain.then(|| format!("{a}-{b}-{c}-{d}-{e}").parse().ok()).flatten()
}

/// The account in an address of the API: `/accounts/tenant/payments`.
fn account_of_path(text: &str) -> Option<AccountId> {
    let (_, rest) = text.split_once("/accounts/")?;
    rest.split(['/', '?', '#']).next()?.parse().ok()
}

/// An account number that is written in groups of four, as IBANs are.
fn iban(words: &[&str]) -> Option<AccountId> {
    let (first, last) = (words.first()?, words.last()?);
    let groups = &words[..words.len() - 1];
    let is_grouped = words.len() > 3 && groups.iter().all(|word| word.len() == 4) && last.len() <= 4;
    let begins = first
        .bytes()
        .enumerate()
        .all(|(place, byte)| if place < 2 { byte.is_ascii_uppercase() } else { byte.is_ascii_digit() });
    (is_grouped && begins).then(|| words.concat().parse().ok()).flatten()
}

/// The spellings of a transaction's id: as it is given, in capitals, and in lower case.
fn spellings(text: &str) -> Vec<TransactionId> {
    let mut spellings: Vec<TransactionId> = Vec::new();
    for spelling in [text.to_owned(), text.to_ascii_uppercase(), text.to_ascii_lowercase()] {
        if let Ok(id) = spelling.parse()
            && !spellings.contains(&id)
        {
            spellings.push(id);
        }
    }
    spellings
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0b5e7a2c-9d1f-5b3a-8c4d-1e2f3a4b5c6d";

    #[test]
    fn a_payment_is_named_in_any_spelling() {
        let want: PaymentId = ID.parse().unwrap();
        for text in [
            ID.to_owned(),
            ID.to_uppercase(),
            ID.replace('-', ""),
            ID.replace('-', "").to_uppercase(),
            format!("\"{ID}\""),
            format!("“{}”", ID.to_uppercase()),
            format!("  '{ID}' "),
            format!("{ID}, please"),
            format!("3637440-{ID}-2"),
            format!("https://bank.example.com/accounts/tenant/payments/{ID}"),
            format!("/accounts/tenant/payments/{ID}/versions?include=data"),
            format!("https://bank.example.com/console#payment?id={ID}"),
        ] {
            assert_eq!(Meanings::read(&text).payment, Some(want), "{text}");
        }
        for text in
            [&format!("{ID}0"), &format!("a{ID}"), &ID[..35], "3637440-gap-2", "tx-1", "", "é0b5e7a2c-9d1f-5b3a"]
        {
            assert_eq!(Meanings::read(text).payment, None, "{text}");
        }
    }

    #[test]
    fn eight_digits_or_more_begin_an_id() {
        for (text, want) in [
            ("0b5e7a2c", Some(0x0b5e_7a2c)),
            ("0B5E7A2C", Some(0x0b5e_7a2c)),
            ("“44102700”", Some(0x4410_2700)),
            ("0b5e7a2c-9d1f-5", Some(0x0b5e_7a2c)),
            ("0b5e7a2c 2026-12-01", Some(0x0b5e_7a2c)),
            ("0b5e7a2", None),
            ("0b5e7a2c9", None),
            ("0b5e7a2g", None),
            ("+b5e7a2c", None),
            ("é5e7a2c", None),
        ] {
            assert_eq!(Meanings::read(text).digits.map(|digits| digits.first), want, "{text}");
        }
        let digits = Meanings::read("0B5E7A2C-9D").digits.unwrap();
        assert!(digits.begin(ID.parse().unwrap()));
        assert!(!digits.begin("0b5e7a2c-8d1f-5b3a-8c4d-1e2f3a4b5c6d".parse().unwrap()));
    }

    #[test]
    fn a_text_can_mean_several_things() {
        let all = |text: &str| {
            let Meanings { digits, account, within, amount, reference, date, .. } = Meanings::read(text);
            let mut found = Vec::new();
            found.extend(digits.map(|_| "digits".to_owned()));
            found.extend(account.map(|account| format!("account {account}")));
            found.extend(within.map(|within| format!("within {within}")));
            found.extend(amount.map(|amount| format!("amount {amount}")));
            found.extend(reference.map(|reference| format!("reference {reference}")));
            found.extend(date.map(|date| format!("date {date}")));
            found.join(", ")
        };
        for (text, want) in [
            ("44102700", "digits, account 44102700, amount 44102700, reference 44102700"),
            ("acme-payroll", "account acme-payroll, reference acme-payroll"),
            ("tenant 1,250.00", "account tenant, within 1,250.00, reference tenant 1,250.00"),
            ("tenant \"RENT NOV\"", "account tenant, within RENT NOV"),
            ("17 352.53", "amount 17352.53, reference 17 352.53"),
            ("£20.05", "amount 20.05 GBP"),
            ("€ 20.05", "amount 20.05 EUR"),
            ("20,05 EUR", "amount 20.05 EUR, reference 20,05 EUR"),
            ("tenant £20.05", "account tenant, within £20.05"),
            ("1250 EUR 2026-12-01", "amount 1250 EUR, reference 1250 EUR, date 2026-12-01"),
            ("GB29 NWBK 6016 1331 9268 19", "account GB29NWBK60161331926819, reference GB29 NWBK 6016 1331 9268 19"),
            ("https://bank.example.com/accounts/tenant/payments?limit=3", "account tenant"),
            ("2026-12-01", "date 2026-12-01"),
            ("<script>", "account script, reference script"),
            ("{{x}}", ""),
            ("", ""),
        ] {
            assert_eq!(all(text), want, "{text}");
        }
    }

    #[test]
    fn a_transaction_is_looked_for_in_each_case() {
        let spellings =
            |text: &str| Meanings::read(text).transactions.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(spellings("Tx-77"), ["Tx-77", "TX-77", "tx-77"]);
        assert_eq!(spellings("'TX-77'"), ["TX-77", "tx-77"]);
        assert_eq!(spellings("77"), ["77"]);
        assert_eq!(spellings(&"t".repeat(65)), [""; 0]);
    }
}
