//! The release workflow: what linters and the rest of the repository say of it.

use std::process::Command;

use serde_json::{Value as Json, json};

use crate::support::documents::text_of;
use crate::support::{program, repository, require};

const PATH: &str = ".github/workflows/release.yml";

fn workflow() -> Json {
    serde_saphyr::from_str(&text_of(PATH)).unwrap()
}

fn steps<'a>(job: &'a Json, key: &'a str) -> impl Iterator<Item = &'a str> {
    job["steps"].as_array().unwrap().iter().filter_map(move |step| step[key].as_str())
}

#[test]
fn linters_have_nothing_to_say() {
    let (actionlint, zizmor) = (program("actionlint"), program("zizmor"));
    if !require(actionlint.is_some() && zizmor.is_some(), "actionlint and zizmor (.ci/tools)") {
        return;
    }
    for (linter, arguments) in
        [(actionlint.unwrap(), &[][..]), (zizmor.unwrap(), &["--offline", "--no-config"])]
    {
        let output = Command::new(&linter).args(arguments).arg(repository(PATH)).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", linter.display());
    }
}

/// Nothing is published but from a tag, after everything else, and nobody else's code comes in by a name that can be moved.
#[test]
fn publishing_is_for_tags_and_actions_are_pinned() {
    let workflow = workflow();
    let jobs = workflow["jobs"].as_object().unwrap();
    assert_eq!(workflow["permissions"], json!({}));
    for (name, job) in jobs {
        let writes = job["permissions"].as_object().unwrap().values().any(|right| *right == "write");
        assert_eq!(writes, name == "publish", "{name}");
        for action in steps(job, "uses") {
            let commit = action.split_once('@').unwrap().1;
            assert!(commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()), "{action}");
        }
    }
    let publish = &jobs["publish"];
    assert_eq!(publish["if"], "startsWith(github.ref, 'refs/tags/v')");
    let before: Vec<_> = jobs.keys().filter(|name| *name != "publish").map(|name| json!(name)).collect();
    let mut needs = publish["needs"].as_array().unwrap().clone();
    needs.sort_by_key(ToString::to_string);
    assert_eq!(needs, before);
}

/// It tests as CI does, fuzzes as `just fuzz` does, and builds for both processors with the one toolchain.
#[test]
fn it_does_what_the_repository_does_elsewhere() {
    let workflow = workflow();
    let jobs = &workflow["jobs"];
    assert!(steps(&jobs["test"], "run").any(|run| run == ".ci/run") && repository(".ci/run").exists());
    let channel =
        text_of("rust-toolchain.toml").parse::<toml::Table>().unwrap()["toolchain"]["channel"].clone();
    let image = format!("docker.io/library/rust:{}-bookworm", channel.as_str().unwrap());
    assert_eq!(jobs["test"]["container"]["image"], image);
    let fuzz = steps(&jobs["fuzz"], "run").find(|run| run.contains("fuzz run")).unwrap();
    let by_hand = text_of("justfile").replace("{{seconds}}", "300");
    assert!(by_hand.contains(&format!("    {fuzz}\n")), "{fuzz}");
    let targets = |row: &Json| row["target"].as_str().unwrap().to_owned();
    let rows = jobs["build"]["strategy"]["matrix"]["include"].as_array().unwrap();
    let built: Vec<_> = rows.iter().map(targets).collect();
    let deny = text_of("deny.toml");
    assert_eq!(built, ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"]);
    assert!(built.iter().all(|target| deny.contains(target)), "dependencies are looked at for each");
    let all: String = steps(&jobs["build"], "run").collect();
    for needed in ["docker build", "sluicegate demo", "cargo deb --no-build", "cargo cyclonedx"] {
        assert!(all.contains(needed), "{needed}");
    }
}
