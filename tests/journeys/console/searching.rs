//! Find: any payment is found from what a caller knows, by the form that the page offers for what is missing.

use anyhow::{Context as _, Result, ensure};
use payments_model::{Failure, Settlement};
use payments_tests::World;
use serde_json::{Value, json};

use super::{HOSTILE, assert_plain, assert_statuses, claim, form, links, page, view};

/// A form of a page that opens a view.
#[derive(Debug)]
struct Opens {
    view: String,
    fields: Vec<(String, String)>,
}

/// The forms of a page that open views, with the values that their fields have.
fn forms(page: &str) -> Vec<Opens> {
    let forms = page.split("<form ").skip(1).filter_map(|form| form.split("</form>").next());
    let attribute = |tag: &str, name: &str| {
        let (_, rest) = tag.split_once(&format!("{name}=\""))?;
        Some(rest.split('"').next()?.to_owned())
    };
    let opens = |form: &str| {
        let view = attribute(form.split('>').next()?, "data-view")?;
        let inputs = form.split('<').filter(|tag| tag.starts_with("input ") || tag.starts_with("select "));
        let field = |tag: &str| Some((attribute(tag, " name")?, attribute(tag, " value").unwrap_or_default()));
        Some(Opens { view, fields: inputs.filter_map(field).collect() })
    };
    forms.filter_map(opens).collect()
}

/// Finds a text, and then opens the form that has this field and this view, filled in.
async fn found_with(world: &World, text: &str, view: &str, filled: &[(&str, &str)]) -> Result<String> {
    let first = page(world, &format!("find?{}", form(&[("text", text)]))).await?;
    let has = |opens: &Opens, name: &str| opens.fields.iter().any(|(known, _)| known == name);
    let fits = |opens: &Opens| opens.view == view && filled.iter().all(|(name, _)| has(opens, name));
    let offered = forms(&first).into_iter().find(fits);
    let mut offered = offered.with_context(|| format!("{text}: no form of {view} with {filled:?}: {first}"))?;
    for (name, value) in filled {
        offered.fields.retain(|(known, _)| known != name);
        offered.fields.push(((*name).to_owned(), (*value).to_owned()));
    }
    let fields: Vec<_> = offered.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    page(world, &format!("{view}?{}", form(&fields))).await
}

/// A page must lead to a payment, or be that payment.
fn assert_leads(page: &str, id: &str, case: &str) {
    let wanted = format!("payment?id={id}");
    let is_it = page.contains(&format!("data-copy=\"{id}\""));
    assert!(is_it || links(page).any(|link| link.starts_with(&wanted)), "{case}: {page}");
}

/// A payment that a caller asks about.
struct Asked {
    account: &'static str,
    key: &'static str,
    scheduled_for: &'static str,
    minor: i64,
    currency: &'static str,
    /// The amount as the caller says it.
    typed: &'static str,
    reference: &'static str,
    /// The date on which it is due.
    date: &'static str,
}

const ASKED: [Asked; 5] = [
    Asked {
        account: "acme-payroll",
        key: "a",
        scheduled_for: "2026-12-01",
        minor: 125_000,
        currency: "GBP",
        typed: "1,250.00",
        reference: "SALARY NOV 0114",
        date: "2026-12-01",
    },
    Asked {
        account: "44102700",
        key: "b",
        scheduled_for: "2026-12-01",
        minor: 1_832_162,
        currency: "JPY",
        typed: "1 832 162",
        reference: "INV 20-7731",
        date: "2026-12-01",
    },
    Asked {
        account: "GB29NWBK60161331926819",
        key: "c",
        scheduled_for: "2026-12-01T09:30:00Z",
        minor: 1_735_253,
        currency: "EUR",
        typed: "17 352.53",
        reference: "44102700",
        date: "2026-12-01",
    },
    Asked {
        account: "acc-1042",
        key: "d",
        scheduled_for: "2026-12-01",
        minor: 5,
        currency: "GBP",
        typed: "0.05",
        reference: "(rent).,'+?:",
        date: "2026-12-01",
    },
    // In another time of the day, and in summer, when the day begins the evening before by UTC.
    Asked {
        account: "acc-1042",
        key: "e",
        scheduled_for: "2027-07-01",
        minor: 1_500,
        currency: "KWD",
        typed: "1.5 KWD",
        reference: "summer",
        date: "2027-07-01",
    },
];

async fn ask(world: &World, asked: &Asked) -> Result<String> {
    let body: Value = json!({
        "payeeAccountId": "shop", "amountMinor": asked.minor, "currency": asked.currency,
        "scheduledFor": asked.scheduled_for, "reference": asked.reference,
    });
    world.create(asked.account, asked.key, &body).await
}

/// Finds a payment in each way, in at most two actions: a search, and one form.
async fn assert_found(world: &World, asked: &Asked, id: &str) -> Result<()> {
    let Asked { account, typed, reference, date, .. } = *asked;
    let case = |way: &str| format!("{account} {reference}, {way}");
    let by_account = found_with(world, account, "account", &[("id", account), ("amount", typed)]).await?;
    assert_leads(&by_account, id, &case("account and amount"));
    let by_amount = found_with(world, typed, "account", &[("amount", typed), ("id", account)]).await?;
    assert_leads(&by_amount, id, &case("amount and account"));
    let by_both = found_with(world, &format!("{account} {typed}"), "account", &[("amount", typed)]).await?;
    assert_leads(&by_both, id, &case("both at once"));
    let by_reference = found_with(world, reference, "account", &[("reference", reference), ("id", account)]).await?;
    assert_leads(&by_reference, id, &case("reference"));
    for digits in [&id[..8], &id[..8].to_uppercase(), &id[..13]] {
        let by_digits = found_with(world, &format!("“{digits}”"), "find", &[("text", digits), ("date", date)]).await?;
        assert_leads(&by_digits, id, &case(digits));
    }
    let with_date = page(world, &format!("find?{}", form(&[("text", &format!("{date} {}", &id[..8]))]))).await?;
    assert_leads(&with_date, id, &case("digits with the date"));
    let of_date = found_with(world, typed, "find", &[("text", typed), ("date", date)]).await?;
    assert_leads(&of_date, id, &case("amount with the date"));
    Ok(())
}

#[tokio::test]
async fn any_payment_is_found_in_two_actions() -> Result<()> {
    let world = World::open().await?;
    let mut ids = Vec::new();
    for asked in &ASKED {
        ids.push(ask(&world, asked).await?);
    }
    for (asked, id) in ASKED.iter().zip(&ids) {
        assert_found(&world, asked, id).await?;
    }
    // Claimed, settled, cancelled; and then with their heads in both tables, on a past date.
    claim(&world, &ids[0], Some(Settlement::Processed("TX-4EC9".parse()?))).await?;
    claim(&world, &ids[1], Some(Settlement::Failed(Failure::new(Some("AM04"), "insufficient funds")))).await?;
    world.cancel(ASKED[3].account, &ids[3]).await?;
    for now in ["2026-12-01T12:00:00Z", "2026-12-09T12:00:00Z"] {
        world.set_clock(now)?;
        for (asked, id) in ASKED.iter().zip(&ids) {
            assert_found(&world, asked, id).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_id_is_found_in_any_spelling() -> Result<()> {
    let world = World::open().await?;
    let id = ask(&world, &ASKED[0]).await?;
    claim(&world, &id, Some(Settlement::Processed("TX-4EC9".parse()?))).await?;
    for text in [
        id.to_uppercase(),
        format!("\"{id}\""),
        format!("  “{id}” "),
        id.replace('-', ""),
        format!("https://bank.example.com/accounts/acme-payroll/payments/{id}"),
        format!("3637440-{id}-2"),
        "TX-4EC9".to_owned(),
        "tx-4ec9".to_owned(),
        "'Tx-4eC9'".to_owned(),
    ] {
        let shown = page(&world, &format!("find?{}", form(&[("text", &text)]))).await?;
        assert!(shown.contains(&format!("data-copy=\"{id}\"")), "{text}: {shown}");
    }
    Ok(())
}

#[tokio::test]
async fn several_meanings_of_a_text_are_sections() -> Result<()> {
    let world = World::open().await?;
    let id = ask(&world, &ASKED[1]).await?;
    let found = page(&world, "find?text=44102700").await?;
    assert!(found.contains("“<bdi class=\"any\">44102700</bdi>” can mean six things"), "{found}");
    for section in ["Account", "Amount", "Payment id that begins with", "Reference", "Payee", "Idempotency key"] {
        assert!(found.contains(&format!("<h2>{section} ")), "{section}: {found}");
    }
    assert!(found.contains("First from today") && found.contains("1,832,162"), "{found}");
    // A transaction with the name of an account.
    claim(&world, &id, Some(Settlement::Processed("44102700".parse()?))).await?;
    world.set_clock("2026-12-02T09:00:00Z")?;
    let found = page(&world, "find?text=44102700").await?;
    assert!(found.contains("<h2>Payment <") && found.contains("Its last payment"), "{found}");
    assert_leads(&found, &id, "the transaction");
    Ok(())
}

#[tokio::test]
async fn a_search_without_a_cheap_answer_says_what_to_add() -> Result<()> {
    let world = World::open().await?;
    for (text, words) in [
        ("1,250.00", vec!["Add a date, because", "add the account that pays"]),
        ("0b5e7a2c", vec!["Add its date, because"]),
        ("RENT NOV 14B", vec!["references are found only within one"]),
        ("shop", vec!["payments to a payee are found only within one", "keys are found only within one"]),
        ("0b5e7a2c-9d1f-5b3a-8c4d-1e2f3a4b5c6d", vec!["keys are found only within one"]),
        ("", vec!["need a date", "need their account", "name=\"date\"", "name=\"account\"", "name=\"key\""]),
    ] {
        let shown = page(&world, &format!("find?{}", form(&[("text", text)]))).await?;
        for words in words {
            assert!(shown.contains(words), "{text}: {words}: {shown}");
        }
    }
    let day = page(&world, "find?text=2026-12-01").await?;
    assert!(links(&day).any(|link| link == "day?date=2026-12-01"), "{day}");
    Ok(())
}

#[tokio::test]
async fn a_search_says_if_it_did_not_look_at_all() -> Result<()> {
    let world = World::with(|environment| environment.shards = 1).await?;
    for number in 0..251 {
        let body = json!({ "payeeAccountId": "shop", "amountMinor": 100 + number, "currency": "GBP", "scheduledFor": "2026-12-01T09:30:00Z" });
        world.create("tenant", &format!("key-{number}"), &body).await?;
    }
    for text in ["99.00", "00000000"] {
        let shown = page(&world, &format!("find?{}", form(&[("text", text), ("date", "2026-12-01")]))).await?;
        assert!(shown.contains("Not all payments of the date were looked at, only 250"), "{text}: {shown}");
        let other = page(&world, &format!("find?{}", form(&[("text", text), ("date", "2026-12-02")]))).await?;
        assert!(other.contains("Nothing found.") && !other.contains("Not all"), "{text}: {other}");
    }
    Ok(())
}

#[tokio::test]
async fn an_account_is_listed_past_and_coming_with_filters() -> Result<()> {
    let world = World::open().await?;
    let mut ids = Vec::new();
    for (number, date) in ["2026-11-20", "2026-11-21", "2026-11-30", "2026-12-24"].into_iter().enumerate() {
        let payee = if number % 2 == 0 { "shop" } else { "landlord" };
        let body = json!({
            "payeeAccountId": payee, "amountMinor": 1_000 * (number + 1), "currency": "GBP", "scheduledFor": date,
            "reference": format!("no {number}"),
        });
        ids.push(world.create("tenant", &format!("key-{number}"), &body).await?);
    }
    world.cancel("tenant", &ids[3]).await?;
    world.set_clock("2026-11-25T09:00:00Z")?;
    for (wanted, places) in [
        ("account?id=tenant", vec![2, 3]),
        ("account?id=tenant&show=past", vec![1, 0]),
        ("account?id=tenant&show=all", vec![3, 2, 1, 0]),
        ("account?id=tenant&show=all&amount=20.00", vec![1]),
        ("account?id=tenant&show=all&amount=20+EUR", vec![]),
        ("account?id=tenant&show=all&payee=shop", vec![2, 0]),
        ("account?id=tenant&show=all&reference=no+2", vec![2]),
        ("account?id=tenant&show=all&status=CANCELLED", vec![3]),
        ("account?id=tenant&from=2026-11-21&to=2026-11-30", vec![1, 2]),
        ("account?id=tenant&from=&to=&status=&amount=&payee=&reference=", vec![2, 3]),
        ("account?id=nobody", vec![]),
    ] {
        let shown = page(&world, wanted).await?;
        let found =
            links(&shown).filter_map(|link| Some(link.strip_prefix("payment?id=")?.split('&').next()?.to_owned()));
        let found: Vec<_> = found.collect();
        let want: Vec<_> = places.iter().map(|place: &usize| ids[*place].clone()).collect();
        assert_eq!(found, want, "{wanted}: {shown}");
        // A filter is not lost on the way to another page, and can be cleared.
        assert_eq!(shown.contains("Clear filters"), wanted.contains("&from=2") || wanted.contains("all&"), "{wanted}");
    }
    let shown = page(&world, "account?id=tenant&show=all").await?;
    assert_eq!(shown.matches("name=\"payments\"").count(), 3, "only scheduled payments can be cancelled: {shown}");
    assert!(shown.contains("data-minor=\"2000\" data-decimals=\"2\" data-currency=\"GBP\""), "{shown}");
    let wrong = [
        "account",
        "account?id=a%20b",
        "account?id=tenant&amount=x",
        "account?id=tenant&show=none",
        "account?id=tenant&cursor=x",
    ];
    assert_statuses(&world, &wrong.map(|wanted| (wanted, 400))).await?;
    assert_statuses(
        &world,
        &[("account?id=tenant&from=2026-12-01&to=2026-11-01", 400), ("account?id=tenant&status=LATE", 400)],
    )
    .await
}

#[tokio::test]
async fn an_account_is_paged() -> Result<()> {
    let world = World::open().await?;
    let mut ids = Vec::new();
    for number in 0..120 {
        let body = json!({ "payeeAccountId": "shop", "amountMinor": 100 + number % 2, "currency": "GBP", "scheduledFor": format!("2026-12-01T09:{:02}:00Z", number % 60) });
        ids.push(world.create("tenant", &format!("key-{number}"), &body).await?);
    }
    for (wanted, want) in
        [("account?id=tenant", 120), ("account?id=tenant&show=all", 120), ("account?id=tenant&amount=1.00", 60)]
    {
        let mut found = Vec::new();
        for page in super::pages(&world, wanted, "cursor=").await? {
            let on_page =
                links(&page).filter_map(|link| Some(link.strip_prefix("payment?id=")?.split('&').next()?.to_owned()));
            found.extend(on_page.collect::<Vec<_>>());
        }
        let all: std::collections::BTreeSet<_> = found.iter().collect();
        assert_eq!((found.len(), all.len()), (want, want), "{wanted}");
    }
    // A place outside of the dates, as somebody types it into an address.
    let outside =
        ["show=coming&cursor=2026-11-01", "show=past&cursor=2026-12-30", "show=all&to=2026-12-01&cursor=2099-01-01"];
    let outside =
        outside.map(|query| format!("account?id=tenant&{query}T00:00:00Z_00000000-0000-5000-8000-000000000000"));
    for wanted in outside {
        assert_statuses(&world, &[(&wanted, 400)]).await?;
    }
    Ok(())
}

#[tokio::test]
async fn what_somebody_types_is_shown_as_text_and_bounded() -> Result<()> {
    let world = World::open().await?;
    ask(&world, &ASKED[0]).await?;
    for text in HOSTILE {
        for wanted in [form(&[("text", text)]), form(&[("text", text), ("date", "2026-12-01")])] {
            let shown = page(&world, &format!("find?{wanted}")).await?;
            assert_plain(&shown, text);
        }
        for name in ["id", "from", "to", "status", "amount", "payee", "cursor", "show"] {
            let shown = view(&world, &format!("account?{}", form(&[("id", "tenant"), (name, text)]))).await?;
            assert_eq!(shown.status, 400, "{name}: {text}");
        }
    }
    let long = page(&world, &format!("find?{}", form(&[("text", &"<é".repeat(200))]))).await?;
    ensure!(long.matches("&lt;").count() < 60, "{long}");
    let filtered = page(&world, &format!("account?{}", form(&[("id", "tenant"), ("reference", "(a).,'+?:")]))).await?;
    ensure!(filtered.contains("value=\"(a).,'+?:\""), "{filtered}");
    Ok(())
}
