//! DuckDB and pyarrow read the parts, where `.ci/run` has installed them.

use std::process::Command;

use payments_boot::Lookup;
use payments_tests::prelude::*;

use super::{DAY, SEALED_AT, day, parts, seal, world};

#[tokio::test]
async fn engines_of_sql_find_what_the_counters_say() -> Result<()> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let python = root.join(".tools/sealed/bin/python");
    if !python.exists() {
        ensure!(Lookup::environment().text("CI").is_none(), "there is no {}; .ci/run installs it", python.display());
        println!("SKIPPED: DuckDB and pyarrow are not installed; .ci/run installs them");
        return Ok(());
    }
    let world = world().await?;
    day(&world).await?;
    world.set_clock(SEALED_AT)?;
    seal(world.functions()).await?;
    let folder = tempfile::tempdir()?;
    for (path, _, _, bytes) in parts(&world).await? {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().context("a folder")?)?;
        std::fs::write(path, bytes)?;
    }
    let counts = world.send(Ask::get(&format!("/counts?from={DAY}&to={DAY}"))).await?.with_status(200)?;
    let file = folder.path().join("counts.json");
    std::fs::write(&file, counts.text)?;
    let read = Command::new(python).arg(root.join(".ci/read-sealed.py")).arg(folder.path()).arg(file).output()?;
    let (said, error) = (String::from_utf8_lossy(&read.stdout), String::from_utf8_lossy(&read.stderr));
    ensure!(read.status.success(), "{said}\n{error}");
    println!("{said}");
    Ok(())
}
