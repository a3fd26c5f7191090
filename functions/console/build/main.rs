//! Renders the guides of operators at build: the console serves those of its own release.

mod guide;

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use guide::{Guide, Heading};

/// The guides in `docs`, each with the number of sections on its first page.
const GUIDES: [(&str, usize); 3] = [("alarms", 2), ("operations", 1), ("restore", 1)];

/// A guide for tests: `src/guides.rs` compares its sections.
const EXAMPLE: &str = "\
# Example
See [an alarm](alarms.md#apierrors), [all](alarms.md), [below](#now-settle-it), [the log](deploy.md#the-event-log),
BusBehind, 2, and `BusBehind`.

## Now: `settle` it
*Actions: end-cause.*

<script>window.pwned=1</script>

An <img src=x onerror=pwn()> and [a link](javascript:window.pwned=1).

| right | \"next\" |
|--:|---|
| `<b>` & \"c\" | d |

```sh
echo <id>
```
### BusBehind
BusBehind";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build");
    let folder = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    let folder = Path::new(&folder);
    let mut guides = Vec::new();
    for (name, _) in GUIDES {
        // Cargo runs this in the crate's folder.
        let path = format!("../../docs/{name}.md");
        println!("cargo::rerun-if-changed={path}");
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        if name == "alarms" {
            std::fs::write(folder.join("priorities.rs"), format!("{:?}", guide::priorities(&text)))?;
        }
        guides.push(Guide::new(name, &text));
    }
    guides.push(Guide::new("example", EXAMPLE));
    let mut code = "[".to_owned();
    for (guide, (name, first)) in guides.iter().zip(GUIDES) {
        writeln!(code, "Guide {{ name: {name:?}, first: {first}, sections: &{} }},", sections(guide, &guides)?)?;
    }
    code.push(']');
    std::fs::write(folder.join("guides.rs"), code)?;
    let example = guides.last().ok_or("there is an example")?;
    Ok(std::fs::write(folder.join("example.rs"), sections(example, &guides)?)?)
}

/// The sections of a guide, as Rust.
fn sections(guide: &Guide, all: &[Guide]) -> Result<String, Box<dyn Error>> {
    let mut code = "[".to_owned();
    for (heading, body) in guide.headings.iter().zip(guide.bodies(all)?) {
        let Heading { anchor, level, title } = heading;
        writeln!(code, "Section {{ at: {anchor:?}, level: {level}, title: {title:?}, body: {body:?} }},")?;
    }
    code.push(']');
    Ok(code)
}
