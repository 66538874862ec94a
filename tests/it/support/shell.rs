//! The commands that documents show and files have in their comments.

/// The commands in a file's comments: indented by three blanks behind `#`, lines that end in a backslash joined.
pub fn commands_in_comments(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("#   ")).map(str::trim);
    joined(lines)
}

/// Commands, one a line, where a backslash at the end goes on in the next.
pub fn joined<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in lines {
        let (text, more) = line.strip_suffix('\\').map_or((line, false), |text| (text, true));
        match commands.last_mut() {
            Some(last) if goes_on => last.push_str(text),
            _ => commands.push(text.to_owned()),
        }
        goes_on = more;
    }
    commands
}
