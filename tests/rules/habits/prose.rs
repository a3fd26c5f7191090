//! Habits of translated English in comments, documents and messages, each with the words to write instead.

/// First words of a paragraph that make a noun of a clause.
const CLAUSES: [&str; 6] = ["What", "How", "Who", "When", "Where", "Which"];
const CLAUSE_PHRASES: [&str; 2] = ["The thing that", "That which"];
const CLAUSE: &str = "begins with a clause: name the thing (outcome, lease expiry, end position), or begin with the \
    subject, If or After";

/// First words of a paragraph that stand for a noun.
const PRONOUNS: [&str; 5] = ["It", "They", "He", "She", "Those"];
/// These, too, if a verb is next.
const DEMONSTRATIVES: [&str; 3] = ["This", "These", "That"];
const VERBS: &str = "is are was were has have had can cannot could does do did may must might will would should says say \
    means makes needs takes keeps reads writes shows holds begins ends returns installs simulates happens";
const PRONOUN: &str = "begins with a pronoun: repeat the noun";

const NEGATED: [&str; 4] = ["is", "are", "was", "were"];
/// Words that belong to "no": "is no longer".
const COMPARED: &str = "longer more less later earlier fewer larger smaller greater lower higher older newer";
const NO: &str = "is no X, none of: write is not an X, is unknown, is invalid, not one of";
const LETS: &str = "lets X do: write allows, makes, or what X does";

#[test]
fn each_habit_is_found_where_it_is_one() {
    let found = |file: &str, text: &str| {
        let lines: Vec<&str> = text.lines().collect();
        habits(file, &lines)
    };
    let clauses = "/// What came of it.\n///\n/// When it ends, wait.\nfn a() {}\n//! Whatever\n//! What is second.";
    assert_eq!(found("a.rs", clauses), [(1, CLAUSE), (3, CLAUSE)]);
    let phrases = "// That which is left.\n\n// The thing that runs.\n/// - Which payment.\n/// - The payment.";
    assert_eq!(found("a.rs", phrases), [(1, CLAUSE), (3, CLAUSE), (4, CLAUSE)]);
    let pronouns = "/// It can.\n\n// This is one.\n\n// This payment is one, they say.\n/// That\n/// is two.";
    assert_eq!(found("a.rs", pronouns), [(1, PRONOUN), (3, PRONOUN), (6, PRONOUN)]);
    let negated = "/// A text is\n/// no date; there is no date, it is no longer \"none of` the `is no date`.\nf(\"is no y\", \"there is no z\");";
    assert_eq!(found("a.rs", negated), [(1, NO), (3, NO)]);
    assert_eq!(found("a.rs", "let a = \"It is none \\\n    of them\"; // and none of us"), [(1, NO), (2, NO)]);
    assert_eq!(found("a.rs", "/// A clock lets time pass.\nlet lets_go = 1;"), [(1, LETS)]);
    let page = "# When\n\nText\nWhen a\n\n- **Who** b\n\n```\nWhat c\n```\n\n| Who | it lets d |\n  1. Those";
    assert_eq!(found("a.md", page), [(6, CLAUSE), (12, LETS), (13, PRONOUN)]);
}

/// The lines of a file that have a habit, in their order for each kind of text.
pub(super) fn habits(name: &str, lines: &[&str]) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for text in if name.ends_with(".rs") { rust(lines) } else { document(lines) } {
        let words = words(&text);
        found.extend(text.is_prose.then(|| opening(&words)).flatten());
        found.extend(phrases(&words));
    }
    found
}

/// Lines that belong together: a paragraph of prose, or code with its string literals.
#[derive(Default)]
struct Text<'t> {
    is_prose: bool,
    lines: Vec<(usize, &'t str)>,
}

struct Word {
    line: usize,
    /// With the punctuation behind it.
    text: String,
}

impl Word {
    fn plain(&self) -> &str {
        self.text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default()
    }

    /// The letters at the end: a literal's first word is joined with the code before it.
    fn end(&self) -> &str {
        self.text.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default()
    }
}

/// The paragraphs of the comments, and the code between them.
fn rust<'t>(lines: &[&'t str]) -> Vec<Text<'t>> {
    let mut texts = Vec::new();
    let mut comment = Vec::new();
    let mut kind = "";
    let mut code = Text::default();
    for (index, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let own = ["///", "//!", "//"].into_iter().find(|marker| trimmed.starts_with(marker)).unwrap_or_default();
        if own != kind {
            texts.extend(paragraphs(&std::mem::take(&mut comment)));
            texts.push(std::mem::take(&mut code));
        }
        kind = own;
        let to = if own.is_empty() { &mut code.lines } else { &mut comment };
        to.push((index + 1, &trimmed[own.len()..]));
    }
    texts.extend(paragraphs(&comment));
    texts.push(code);
    texts
}

fn document<'t>(lines: &[&'t str]) -> Vec<Text<'t>> {
    paragraphs(&lines.iter().enumerate().map(|(index, line)| (index + 1, *line)).collect::<Vec<_>>())
}

/// The paragraphs of Markdown, list items and rows of tables among them, without its blocks of code.
fn paragraphs<'t>(lines: &[(usize, &'t str)]) -> Vec<Text<'t>> {
    let mut paragraphs = Vec::<Text<'t>>::new();
    let mut is_code = false;
    let mut is_new = true;
    for (number, line) in lines {
        let line = line.trim();
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        if line.is_empty() || is_fence || is_code {
            is_new = true;
            continue;
        }
        let item = line.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix(". ");
        let item = item.or_else(|| line.strip_prefix("- ")).or_else(|| line.strip_prefix("* "));
        let is_alone = ["#", "|", "Test: "].iter().any(|beginning| line.starts_with(beginning));
        match paragraphs.last_mut().filter(|_| !is_new && item.is_none() && !is_alone) {
            Some(paragraph) => paragraph.lines.push((*number, line)),
            None => paragraphs.push(Text { is_prose: !is_alone, lines: vec![(*number, item.unwrap_or(line))] }),
        }
        is_new = is_alone;
    }
    paragraphs
}

/// The words of a text, without what is before their first letter. In prose, a span of code is a word.
fn words(text: &Text<'_>) -> Vec<Word> {
    let (mut words, mut is_span) = (Vec::new(), false);
    for (line, part) in &text.lines {
        for token in part.split_whitespace().filter(|token| *token != "\\") {
            let was_span = is_span;
            is_span ^= text.is_prose && token.matches('`').count() % 2 == 1;
            let is_code = was_span || (text.is_prose && token.contains('`'));
            let token = if is_code { "_" } else { token.trim_start_matches(|c: char| !c.is_alphanumeric()) };
            words.push(Word { line: *line, text: token.to_owned() });
        }
    }
    words
}

/// The habit with which a paragraph begins.
fn opening(words: &[Word]) -> Option<(usize, &'static str)> {
    let first = words.first()?;
    let second = words.get(1).map(Word::plain).unwrap_or_default();
    let begins = |phrase: &&str| phrase.split(' ').zip(words).all(|(part, word)| part == word.plain());
    let is_pronoun =
        PRONOUNS.contains(&first.plain()) || (DEMONSTRATIVES.contains(&first.plain()) && is_one(VERBS, second));
    if CLAUSES.contains(&first.plain()) || CLAUSE_PHRASES.iter().any(begins) {
        return Some((first.line, CLAUSE));
    }
    is_pronoun.then_some((first.line, PRONOUN))
}

/// The habits within a text.
fn phrases(words: &[Word]) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for (place, word) in words.iter().enumerate() {
        let next = |n: usize| words.get(place + n).map(Word::plain).unwrap_or_default();
        let before = place.checked_sub(1).map(|before| words[before].end().to_lowercase()).unwrap_or_default();
        let is_negated = NEGATED.contains(&word.end())
            && words.get(place + 1).is_some_and(|word| word.text == "no")
            && before != "there"
            && !is_one(COMPARED, next(2));
        let is_none_of = word.end().eq_ignore_ascii_case("none") && next(1) == "of";
        found.extend((is_negated || is_none_of).then_some((word.line, NO)));
        found.extend(word.end().eq_ignore_ascii_case("lets").then_some((word.line, LETS)));
    }
    found
}

fn is_one(words: &str, word: &str) -> bool {
    words.split(' ').any(|one| one == word)
}
