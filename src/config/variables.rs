//! `${NAME}` and `${NAME:-default}` in configured texts, as in Vector's configuration.

/// Puts variables' values in; `$$` is a dollar sign.
///
/// # Errors
/// Which variable is not set, or what is not closed.
pub fn expand(text: &str, lookup: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        rest = after;
        if let Some(after) = after.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some(inside) = after.strip_prefix('{') {
            let (inside, after) = inside
                .split_once('}')
                .ok_or_else(|| format!("`{text}` has a `${{` that is not closed by `}}`"))?;
            let (name, default) = match inside.split_once(":-") {
                Some((name, default)) => (name, Some(default.to_owned())),
                None => (inside, None),
            };
            let value = lookup(name).filter(|value| !value.is_empty()).or(default);
            out.push_str(&value.ok_or_else(|| {
                format!("the environment variable {name} is not set: set it, or write ${{{name}:-default}}")
            })?);
            rest = after;
        } else {
            out.push('$');
        }
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_defaults_and_dollars() {
        let lookup = |name: &str| (name == "NODE").then(|| "n1".to_owned());
        let expanded = |text| expand(text, lookup);
        assert_eq!(expanded("a-${NODE}-b-${NODE}"), Ok("a-n1-b-n1".into()));
        assert_eq!(expanded("${NONE:-x}${NODE:-y}$$$5"), Ok("xn1$$5".into()));
        assert!(expanded("${NONE}").unwrap_err().contains("NONE is not set"));
        assert!(expanded("${NODE").unwrap_err().contains("not closed"));
    }
}
