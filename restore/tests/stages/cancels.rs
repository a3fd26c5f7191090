//! Cancels that are repeated: a refused one stops no other, and each is told.

use std::path::Path;

use anyhow::{Context as _, Result};
use payments_restore::stages::{Lost, cancels, listed};

use crate::prepared::{hot, noted};
use crate::world::World;

/// The id of a payment.
fn id(number: usize) -> String {
    format!("0b1c2d3e-0000-5000-8000-{number:012}")
}

fn payment(number: usize) -> Result<Lost> {
    Ok(format!("acct-1/{}", id(number)).parse()?)
}

/// The read of a payment's status, and a status.
fn status(number: usize, status: &str) -> String {
    format!(
        "aws dynamodb query --consistent-read --table-name payments-prod-restored-hot-1 --key-condition-expression 'pk = :account' \
         --expression-attribute-values '{{\":account\":{{\"S\":\"ACCT#acct-1\"}}}}' --query \
         'Items[?ends_with(sk.S, '\\''#{}'\\'')].status.S | [0]' => \"{status}\"",
        id(number)
    )
}

/// The stack has the restored table, where these payments have a status, and some of them none.
fn world(statuses: &[&str]) -> Result<World> {
    let mut world = World::new()?;
    world.set(&format!("{} => \"payments-prod-restored-hot-1\"", crate::HOT_OUTPUT))?;
    for (number, it) in statuses.iter().enumerate() {
        world.set(&status(number, it))?;
    }
    Ok(world)
}

#[test]
fn a_refused_cancel_stops_no_other_and_all_refused_are_named() -> Result<()> {
    let mut world = world(&["PENDING", "SCHEDULED", "SCHEDULED", "CANCELLED"])?;
    let note = noted(&mut world, &hot())?;
    world.acts.clear();
    // The world knows nothing of the last one, and throttles a call for one.
    world.throttled = vec![id(2)];
    let all = (0..5).map(payment).collect::<Result<Vec<_>>>()?;
    let refused = world.stage(true, &note, |note, stack, _| cancels(note, stack, &all)).expect_err("a refusal");
    insta::assert_snapshot!(format!("{refused:#}"));
    assert_eq!(world.acts.len(), 5, "{:#?}", world.acts);
    for number in [1, 2] {
        let line = status(number, "");
        let (read, _) = line.split_once(" => ").context("no read")?;
        assert_eq!(world.answers[read], "CANCELLED", "{number}");
    }
    // A refusal is told where it happens, too.
    assert_eq!(world.said.iter().filter(|line| line.contains("failed: ")).count(), 2, "{:#?}", world.said);
    Ok(())
}

#[test]
fn many_refusals_are_counted() -> Result<()> {
    let mut world = world(&["PENDING"; 25])?;
    let note = noted(&mut world, &hot())?;
    let all = (0..25).map(payment).collect::<Result<Vec<_>>>()?;
    let refused = world.stage(true, &note, |note, stack, _| cancels(note, stack, &all)).expect_err("a refusal");
    let text = format!("{refused:#}");
    assert!(text.starts_with("25 of 25 steps failed") && text.ends_with("\nand 5 more, told above"), "{text}");
    assert_eq!(text.lines().count(), 22, "{text}");
    Ok(())
}

#[test]
fn a_list_of_payments_is_read_and_a_bad_line_is_named() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("cancelled.txt");
    let read = |text: &str| {
        std::fs::write(&path, text)?;
        listed(&path)
    };
    assert_eq!(read(&format!("acct-1/{}\r\n\n acct-1/{}\n", id(0), id(1)))?, [payment(0)?, payment(1)?]);
    for bad in ["acct-1", "acct-1/1", &format!("/{}", id(1)), &format!("acct-1/{}/cancel", id(1))] {
        let error = read(&format!("acct-1/{}\n{bad}\n", id(0))).expect_err(bad);
        let text = format!("{error:#}");
        assert!(text.starts_with("line 2 of ") && text.contains(bad) && text.contains("expected ACCOUNT/ID"), "{text}");
    }
    let missing = listed(Path::new("no.txt")).expect_err("no file");
    assert!(format!("{missing:#}").contains("no.txt cannot be read"), "{missing:#}");
    Ok(())
}
