//! Two habits of the code: `of` as a constructor, and parallel bindings of three or more in one `let`.

const OF: &str = "a function of: write new, from_, parse or for_, or name it after its result";
const PARALLEL: &str = "three or more bindings in one let: write one a line, or derive Default";

/// Bindings from which on the eye has to pair columns.
const MANY: usize = 3;

#[test]
fn each_habit_is_found_where_it_is_one() {
    let constructors = "fn of(a: u8) -> Self {}\nfn of_key(a: &str) -> Option<Self>;\nfn of_two(a: u8) -> u8 {}\n\
        fn of_other(&self) -> Self {}\nfn offer() -> Self {}\n// fn of() -> Self\n    pub async fn of<T>(\n) -> T {}";
    assert_eq!(habits(constructors), [(1, OF), (2, OF), (7, OF)]);
    let bindings = "let (a, b, c) = (1, f(2, 3), 4);\nlet (a, b) = (1, 2);\nlet (a, b, c) = f();\n\
        let (mut a, b, c): (u8, u8, u8) = (\n1, \")\", ')',\n);\nif let (a, b, c) = (1, 2, 3) {}\n\
        let (a, b, c) = (1, 2, 3) else { return };\nlet (a, b, c) = (f)(1, 2, 3);\n\
        \"let (a, b, c) = (1, 2, 3);\"; let (a, (b, c)) = (1, g());";
    assert_eq!(habits(bindings), [(1, PARALLEL), (4, PARALLEL)]);
}

/// The lines of a Rust file that have a habit.
pub(super) fn habits(text: &str) -> Vec<(usize, &'static str)> {
    let code = without_texts(text);
    let line = |at: usize| code[..at].matches('\n').count() + 1;
    let constructors = words(&code, "fn ").filter(|at| is_constructor_of(&code[at + 3..])).map(|at| (line(at), OF));
    let parallel = words(&code, "let (").filter(|at| is_parallel(&code, *at)).map(|at| (line(at), PARALLEL));
    constructors.chain(parallel).collect()
}

/// The places of a word that does not end another one.
fn words<'c>(code: &'c str, word: &'static str) -> impl Iterator<Item = usize> + 'c {
    let begins = |at: &usize| !code[..*at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
    code.match_indices(word).map(|(at, _)| at).filter(begins)
}

/// Whether a signature is named `of`, or begins with `of_` and makes its own type from something else.
fn is_constructor_of(signature: &str) -> bool {
    let name = signature.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    let signature = signature.split(['{', ';']).next().unwrap_or_default();
    let returned = signature.rsplit_once("->").map_or("", |(_, returned)| returned);
    let is_method = words(signature, "self").next().is_some();
    name == "of" || (name.starts_with("of_") && returned.contains("Self") && !is_method)
}

/// Whether a `let` has a tuple of names and a tuple literal of as many values, and cannot fail.
fn is_parallel(code: &str, at: usize) -> bool {
    let is_condition = ["if", "while", "&&"].iter().any(|word| code[..at].trim_end().ends_with(word));
    let Some((names, rest)) = tuple(&code[at + "let ".len()..]) else { return false };
    let Some((_, value)) = rest.split_once('=').filter(|(kind, _)| !kind.contains(';')) else { return false };
    let value = tuple(value.trim_start()).filter(|(_, after)| after.starts_with(';'));
    !is_condition && names >= MANY && value.is_some_and(|(values, _)| values >= MANY)
}

/// The number of elements of the brackets with which a text begins, and the text after them.
fn tuple(text: &str) -> Option<(usize, &str)> {
    let mut depth = 0_usize;
    let mut elements = 0;
    let mut is_element = false;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return (at > 0).then(|| (elements + usize::from(is_element), &text[at + 1..]));
        }
        if depth == 1 && c == ',' {
            elements += usize::from(is_element);
        }
        is_element = if depth == 1 && c == ',' { false } else { is_element || (at > 0 && !c.is_whitespace()) };
    }
    None
}

/// The code with blanks in place of comments, string literals and characters, on the same lines.
fn without_texts(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = text_length(rest, &code);
        let part = &rest[..length.unwrap_or(c.len_utf8())];
        match length {
            Some(_) => code.extend(part.chars().map(|c| if c == '\n' { c } else { '_' })),
            None => code.push(c),
        }
        rest = &rest[part.len()..];
    }
    code
}

/// The bytes of the comment, string literal or character with which a text begins, if it does.
fn text_length(text: &str, before: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    let hashes = text.strip_prefix('r').map_or(0, |raw| raw.len() - raw.trim_start_matches('#').len());
    let is_raw = text.strip_prefix('r').is_some_and(|raw| raw[hashes..].starts_with('"'));
    if is_raw && !before.ends_with(|c: char| c.is_alphanumeric() && c != 'b') {
        let end = format!("\"{}", "#".repeat(hashes));
        let content = hashes + 2;
        return text[content..].find(&end).map(|at| content + at + end.len());
    }
    let quote = text.chars().next().filter(|c| *c == '"' || *c == '\'')?;
    let mut characters = text.char_indices().skip(1);
    let mut length = 0;
    while let Some((at, c)) = characters.next() {
        length += 1;
        match c {
            '\\' => {
                characters.next();
            }
            // A lifetime has no end.
            _ if quote == '\'' && c != quote && length > 1 => return None,
            _ if c == quote => return (length > 1 || quote == '"').then_some(at + 1),
            _ => {}
        }
    }
    None
}
