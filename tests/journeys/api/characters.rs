//! Every printable character, in ids, cursors and parameters, as API Gateway delivers them.

use payments_http::routes::ROUTES;
use payments_machine::{Handlers as _, event};
use payments_model::{Event, Settlement};
use payments_tests::Contract;
use payments_tests::prelude::*;

/// The printable characters of ASCII, and some beyond.
fn characters() -> impl Iterator<Item = char> {
    (' '..='~').chain(['é', '\u{2212}', '\u{1f600}'])
}

/// A text of which every byte is percent-encoded.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Sends a request whose path parameters API Gateway decoded to these.
async fn send_with(world: &World, ask: Ask, parameters: &[(&str, &str)]) -> Result<Reply> {
    let authorizer = event::all_scopes(event::DEVELOPMENT_CLIENT);
    let (function, mut event) = ask.event("test", chrono::DateTime::UNIX_EPOCH, &authorizer)?;
    for (name, value) in parameters {
        event.path_parameters.insert((*name).to_owned(), (*value).to_owned());
    }
    let key = event.route_key.clone().unwrap_or_default();
    let reply = Reply::from_response(world.functions().invoke(function, event).await)?;
    Contract::get()?.check(&key, &reply)?;
    Ok(reply)
}

#[tokio::test]
async fn a_transaction_id_of_any_printable_characters_finds_its_payment() -> Result<()> {
    let world = World::open().await?;
    let single = (' '..='~').map(|c| c.to_string());
    let within = (' '..='~').map(|c| format!("a{c}{c}b"));
    let all: String = (' '..='~').collect();
    let others = [&all[..64], &all[31..], "TX/1?a=b&c=d#e", " %2F ", "..", "TX-1,TX-2", "+ +"].map(str::to_owned);
    let ids: Vec<String> = single.chain(within).chain(others).collect();
    let payments = world.create_all((0..ids.len()).map(|n| entry("buyer", n, order("2026-12-01")))).await?;
    for (payment, id) in payments.iter().zip(&ids) {
        let settled = Event::Settle(Settlement::Processed(id.parse()?));
        move_on(&world, payment.parse()?, vec![Event::Sweep, settled], "2026-12-01T10:00:00Z").await?;
    }
    for (payment, id) in payments.iter().zip(&ids) {
        // As a form encodes it (a space is "+"), and with every byte encoded.
        let form: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
        for value in [form, encoded(id)] {
            let reply = world.get(&format!("/payments?transactionId={value}")).await?;
            let found: Vec<_> = reply.payments().iter().map(|p| (&p["paymentId"], &p["transactionId"])).collect();
            assert_eq!(found, [(&json!(payment), &json!(id))], "{id:?} as {value}: {reply}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_id_in_a_path_is_valid_or_a_400_whatever_its_characters() -> Result<()> {
    let world = World::open().await?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    for c in characters() {
        for (account, want) in [(c.to_string(), allowed(c) && c != '.'), (format!("a{c}"), allowed(c))] {
            for ask in [
                Ask::get("/accounts/a/payments"),
                Ask::create("a", &format!("k{}", u32::from(c)), &order("2026-12-01")),
            ] {
                let reply = send_with(&world, ask.clone(), &[("accountId", &account)]).await?;
                let is_good = reply.status < 300;
                assert_eq!(is_good, want, "{account:?} in {ask:?}: {reply}");
                assert!(is_good || (reply.problem(), reply.field("field")) == ("invalid-parameter", "accountId"));
            }
        }
        let (get, cancel) = (Ask::get("/accounts/a/payments/p"), Ask::cancel("a", "p"));
        for ask in [get, cancel] {
            let id = format!("b2b52c61-096a-55bf-800b-2491fc37563{c}");
            let reply = send_with(&world, ask, &[("paymentId", &id)]).await?;
            let want = if matches!(c, '0'..='9' | 'a'..='f') { 404 } else { 400 };
            assert_eq!(reply.status, want, "{id}: {reply}");
        }
    }
    for dots in [".", ".."] {
        let reply = send_with(&world, Ask::cancel("a", "p"), &[("accountId", dots)]).await?;
        assert_eq!((reply.status, reply.field("field")), (400, "accountId"), "{reply}");
    }
    Ok(())
}

#[tokio::test]
async fn a_cursor_carries_every_account() -> Result<()> {
    let world = World::open().await?;
    let allowed = (' '..='~').filter(|c| c.is_ascii_alphanumeric() || ".-_".contains(*c));
    let accounts = allowed.map(|c| format!("a{c}")).chain(["...".to_owned(), "..a".to_owned(), "-".repeat(48)]);
    for account in accounts {
        for key in ["1", "2"] {
            world.create(&account, key, &order("2026-12-01")).await?;
        }
        let path = format!("/accounts/{account}/payments?limit=1");
        let first = world.get(&path).await?;
        // A cursor needs no encoding, and may have one.
        let cursor = first.field("nextCursor");
        for cursor in [cursor.to_owned(), encoded(cursor)] {
            let second = world.get(&format!("{path}&cursor={cursor}")).await?;
            assert_eq!(second.payments().len(), 1, "{account}: {second}");
            assert_ne!(second.payments(), first.payments(), "{account}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_key_and_a_payee_are_valid_or_rejected_whatever_their_characters() -> Result<()> {
    let world = World::open().await?;
    for c in ' '..='~' {
        let reply = world.send(Ask::create("tenant", &format!("k{c}k"), &order("2026-12-01"))).await?;
        assert_eq!(reply.status, if " ,".contains(c) { 400 } else { 201 }, "{c:?}: {reply}");
        let entry = entry("tenant", format!("k{c}k"), order("2026-12-01"));
        let batch = world.send(Ask::post("/payment-batches").json(&json!({ "payments": [entry] }))).await?;
        assert_eq!(batch.body["results"][0]["statusCode"], reply.status, "{c:?}: {batch}");
        let to = order_with("2026-12-01", json!({ "payeeAccountId": c.to_string() }));
        let reply = world.send(Ask::create("tenant", &format!("payee{}", u32::from(c)), &to)).await?;
        let want = if c.is_ascii_alphanumeric() || "-_".contains(c) { 201 } else { 422 };
        assert_eq!(reply.status, want, "{c:?}: {reply}");
    }
    Ok(())
}

/// A key in double quotes is the text inside: both forms of one key are one payment.
#[tokio::test]
async fn a_key_in_quotes_is_the_text_inside() -> Result<()> {
    let world = World::open().await?;
    let plain = world.create("tenant", "rent-1", &order("2026-12-01")).await?;
    let again = world.send(Ask::create("tenant", r#""rent-1""#, &order("2026-12-01"))).await?.replayed()?;
    assert_eq!(again.field("paymentId"), plain);
    for value in [r#""rent-2"#, r#""""#, r#""a b""#] {
        world.refused(Ask::create("tenant", value, &order("2026-12-01")), 400, "invalid-idempotency-key").await?;
    }
    // A body and a query have the key itself, which may have quotes.
    let odd = world.create("tenant", r#""\"odd\"""#, &order("2026-12-01")).await?;
    assert_eq!(world.get("/accounts/tenant/payments?idempotencyKey=%22odd%22").await?.ids(), [odd]);
    Ok(())
}

#[tokio::test]
async fn a_parameter_is_valid_or_a_400_that_names_it_whatever_its_characters() -> Result<()> {
    let world = World::open().await?;
    let lists: [(&str, &[&str]); 4] = [
        ("/accounts/a/payments", query_account::LIST_PARAMETERS),
        ("/payments", query_due::LIST_PARAMETERS),
        ("/counts", query_due::COUNTS_PARAMETERS),
        ("/events", query_due::EVENTS_PARAMETERS),
    ];
    for (path, names) in lists {
        assert!(ROUTES.iter().any(|spec| spec.parameters(path).is_some()), "{path}");
        for c in characters() {
            let (c, quoted) = (encoded(&c.to_string()), c);
            for name in names {
                for value in [c.clone(), format!("a{c}"), format!("2026-12-01{c}"), format!("1{c}")] {
                    let reply = world.send(Ask::get(&format!("{path}?{name}={value}"))).await?;
                    let is_named = reply.status == 400 && reply.field("field") == *name;
                    // A shard alone lacks a date, and some values are valid.
                    let lacks_date = path == "/payments" && reply.field("field") == "dueDate";
                    assert!(reply.status == 200 || is_named || lacks_date, "{path}?{name}={value}: {reply}");
                    assert!(*name != "cursor" || reply.problem() == "invalid-cursor", "{value}: {reply}");
                }
            }
            let reply = world.send(Ask::get(&format!("{path}?{c}=1"))).await?;
            assert_eq!((reply.status, reply.field("field")), (400, quoted.to_string().as_str()), "{path}: {reply}");
        }
    }
    Ok(())
}
