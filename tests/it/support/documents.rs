//! The documents of the repository, taken apart.

use super::repository;

/// Every document, as a path in the repository.
pub fn documents() -> Vec<String> {
    let pages = |folder: &str| -> Vec<String> {
        let names = std::fs::read_dir(repository(folder)).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".md")).map(|name| format!("{folder}/{name}")).collect()
    };
    let mut all =
        [vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned()], pages("docs"), pages("vector-config")]
            .concat();
    all.sort();
    all
}

/// A file's text.
pub fn text_of(path: &str) -> String {
    std::fs::read_to_string(repository(path)).unwrap()
}

/// The blocks of code in a language.
pub fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let found = text.split(&fence).skip(1).filter_map(|rest| rest.split_once("```"));
    found.map(|(block, _)| block.to_owned()).collect()
}

/// What stands between single backticks, outside blocks.
pub fn inline(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|part| part.split('`').skip(1).step_by(2)).collect()
}

/// Where links lead: a path, perhaps with `#` and a heading.
pub fn links(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    let targets = prose.flat_map(|part| part.split("](").skip(1)).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target).filter(|target| !target.contains("://")).collect()
}

/// A text's headings, as links name them.
pub fn headings(text: &str) -> Vec<String> {
    let prose = text.split("```").step_by(2).flat_map(str::lines);
    let titles =
        prose.filter_map(|line| line.strip_prefix('#').map(|rest| rest.trim_start_matches('#').trim()));
    let kept = |c: char| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
        _ => None,
    };
    titles.map(|title| title.chars().filter_map(kept).collect()).collect()
}
