//! The stages of a restore over a world without AWS: plans, refusals, and runs that are cut off.

mod cancels;
mod damaged;
mod prepared;
mod refusals;
mod world;

use anyhow::Result;
use payments_restore::stages::{Allowed, Start, changes, clients, import};
use payments_restore::{Chosen, Note, Origin, StackNow};

use crate::prepared::{NOW, STAGES, all, at, hot, log, noted, ready, tables};
use crate::refusals::{HOT_OUTPUT, SET, STACK, STATUS};
use crate::world::World;

#[test]
fn each_stage_shows_its_steps_and_changes_nothing() -> Result<()> {
    for (name, _, steps) in STAGES {
        let mut world = World::new()?;
        let note = ready(&mut world, name)?;
        let is_done = world.stage(false, &note, steps)?;
        assert!(!is_done && world.acts.is_empty(), "{name}: {:?}", world.acts);
        insta::assert_snapshot!(name, world.said.join("\n"));
    }
    Ok(())
}

#[test]
fn a_stage_that_is_cut_off_does_what_is_left_and_nothing_twice() -> Result<()> {
    let mut cuts = 0;
    for (name, _, steps) in STAGES {
        let mut world = World::new()?;
        let note = ready(&mut world, name)?;
        world.stage(true, &note, steps)?;
        let whole = world.acts.clone();
        let is_done = world.stage(false, &note, steps)?;
        // Nobody knows without publishing whether there is something to publish.
        assert!(is_done || name == "begin", "{name}: {:#?}", world.said);
        for cut in 0..whole.len() {
            let mut world = World::new()?;
            let note = ready(&mut world, name)?;
            world.lost = Some(cut);
            world.stage(true, &note, steps).unwrap_err();
            world.lost = None;
            world.stage(true, &note, steps)?;
            // Building, uploading and publishing can be repeated; the change set is made once.
            let once = |acts: &[String]| {
                let repeatable = ["sam ", "aws s3 cp packaged", "echo '{\"action\":\"publish\"}'"];
                acts.iter().filter(|act| !repeatable.iter().any(|it| act.starts_with(it))).cloned().collect::<Vec<_>>()
            };
            assert_eq!(once(&world.acts), once(&whole), "{name}, cut after {}", whole[cut]);
            cuts += 1;
        }
    }
    assert!(cuts >= 40, "{cuts} cuts");
    Ok(())
}

/// A start is refused for tables that cannot be restored, and for a file that is not its own.
#[test]
fn a_restore_begins_with_free_names_and_its_own_file() -> Result<()> {
    let refused = |prepare: &dyn Fn(&mut World) -> Result<()>, choices: &Start| {
        let mut world = World::new()?;
        prepare(&mut world)?;
        let refused = noted(&mut world, choices).expect_err("a start");
        anyhow::Ok(format!("{refused:#}"))
    };
    let taken = |world: &mut World| {
        world.set(
            r#"aws dynamodb describe-table --table-name payments-prod-restored-hot-1 => {"Table":{"TableName":"x"}}"#,
        )
    };
    let began = |world: &mut World| noted(world, &hot()).map(drop);
    insta::assert_snapshot!(refused(&taken, &hot())?, @r#"step 1 is refused: the table payments-prod-restored-hot-1 is "x", expected missing; it is of an earlier restore: give another --number"#);
    insta::assert_snapshot!(refused(&began, &all())?, @"restore.json is of another restore, or of other choices; move it away, then run this again");
    insta::assert_snapshot!(refused(&|_| Ok(()), &Start { history_to: at("2026-11-20T08:59:59Z"), ..hot() })?, @"the hot table would be later than the long-term one: give --history-to 2026-11-20T09:00:00Z or later");
    insta::assert_snapshot!(refused(&|_| Ok(()), &Start { to: at("2026-10-15T20:00:00Z"), ..hot() })?, @r#"step 1 is refused: the backups' window of hot is {"EarliestRestorableDateTime":"2026-10-16T00:00:00+00:00","LatestRestorableDateTime":1795168800.5,"PointInTimeRecoveryStatus":"ENABLED"}, expected a window with 2026-10-15T20:00:00Z; choose an instant to which the hot table can be restored, and start again"#);
    // The same start is done.
    let mut world = World::new()?;
    let note = noted(&mut world, &hot())?;
    assert_eq!(noted(&mut world, &hot())?, note);
    // The file keeps what rebuild has noted.
    let note = Note { rebuild: Some(Chosen::default()), rebuilt: at(NOW), ..note };
    note.write(&world.folder.path().join("restore.json"))?;
    assert_eq!(noted(&mut world, &hot())?, note);
    Ok(())
}

#[test]
fn a_step_that_is_not_done_says_so() -> Result<()> {
    let mut world = World::new()?;
    let note = ready(&mut world, "changes")?;
    world.failing = vec![format!(r#"{SET} => {{"Status":"FAILED"}}"#)];
    let failed = world.stage(true, &note, changes).expect_err("a failed change set");
    insta::assert_snapshot!(format!("{failed:#}"), @"step 1, Build the committed template, and make a change set of it, which changes nothing yet: the change set failed: look why, then `aws cloudformation delete-change-set --stack-name payments-prod --change-set-name restored-1`, then run `cargo restore changes --apply` again");
    let mut world = World::new()?;
    let note = ready(&mut world, "tables")?;
    world.failing = vec![String::from("aws dynamodb describe-table --table-name payments-prod-restored-hot-1 => null")];
    let failed = world.stage(true, &note, tables).expect_err("a table that does not appear");
    insta::assert_snapshot!(format!("{failed:#}"), @"step 1, Restore hot as payments-prod-restored-hot-1: it is not done: TableName of payments-prod-restored-hot-1 is missing, expected there; look at the table, then run this again");
    Ok(())
}

/// The connection is lost after the change set was executed: the next run waits. A stack that rolls back fails at once.
#[test]
fn an_import_that_is_cut_off_is_waited_for() -> Result<()> {
    let mut world = World::new()?;
    let note = ready(&mut world, "import")?;
    world.set(&format!(r#"{SET} => {{"ExecutionStatus":"EXECUTE_IN_PROGRESS"}}"#))?;
    let failed = world.stage(true, &note, import).expect_err("an update that does not end");
    assert!(world.acts.is_empty(), "{:?}", world.acts);
    insta::assert_snapshot!(format!("{failed:#}"), @r#"step 1, Wait until the stack has the restored tables: it is not done: the stack's output PaymentsTableName is "hot", expected "payments-prod-restored-hot-1"; import the restored tables first: `cargo restore import`"#);
    for status in ["UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_FAILED", "UPDATE_FAILED"] {
        let mut world = World::new()?;
        let note = ready(&mut world, "import")?;
        world.failing = vec![format!(r#"{STATUS} => "{status}""#), format!(r#"{HOT_OUTPUT} => "hot""#)];
        let failed = world.stage(true, &note, import).expect_err(status);
        assert!(format!("{failed:#}").contains("the stack failed: look at its events"), "{failed:#}");
    }
    Ok(())
}

/// Another profile or region has another stack of the same name.
#[test]
fn a_namesake_of_the_stack_is_left_alone() -> Result<()> {
    let mut world = World::new()?;
    let note = ready(&mut world, "close")?;
    world.set(&format!("{STACK} => {}", world.answers[STACK].to_string().replace("111122223333", "444455556666")))?;
    let refused = world.go(true, |runner| clients(&note, &StackNow::for_note(&note, runner)?, Allowed::Reads));
    insta::assert_snapshot!(format!("{:#}", refused.expect_err("another stack")), @"payments-prod is arn:aws:cloudformation:eu-west-2:444455556666:stack/payments-prod/1, expected arn:aws:cloudformation:eu-west-2:111122223333:stack/payments-prod/1; use the profile and the region of `cargo restore start`");
    Ok(())
}

#[test]
fn a_lost_log_is_restored_from_its_backup_or_begins_empty() -> Result<()> {
    for (origin, wanted) in [
        (
            Origin::Backup,
            "aws dynamodb restore-table-from-backup --target-table-name payments-prod-restored-log-1 --backup-arn arn:last",
        ),
        (
            Origin::Empty,
            "aws dynamodb create-table --table-name payments-prod-restored-log-1 --billing-mode PAY_PER_REQUEST --attribute-definitions \
             AttributeName=pk,AttributeType=S AttributeName=sk,AttributeType=S --key-schema AttributeName=pk,KeyType=HASH \
             AttributeName=sk,KeyType=RANGE --sse-specification Enabled=true,SSEType=KMS,KMSMasterKeyId=key",
        ),
    ] {
        let mut world = World::new()?;
        let note = noted(&mut world, &log(origin, None))?;
        world.stage(true, &note, tables)?;
        assert_eq!(world.acts[0], wanted);
        assert_eq!(world.acts.len(), 6, "{:#?}", world.acts);
    }
    Ok(())
}
