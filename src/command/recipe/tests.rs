//! Recipes that can be read, and others.

use super::*;

#[test]
fn a_recipe_is_faults_and_expectations() {
    let text = r#"
seed = 7

[[fault]]
name = "lost answer"
on = "kind:request tool:charge_account"
do = "disconnect"
at = "before-final"
times = 2

[[fault]]
on = "kind:result"
do = "delay"
ms = "2s"
jitter = 500
chance = 0.25
times = "always"

[[expect]]
fault = "lost answer"
that = "retries-with-new-id"
within = "1s"

[[expect]]
that = "no-finding"
"#;
    let recipe = Recipe::parse(text).unwrap();
    let words: Vec<String> = recipe.faults.iter().map(ToString::to_string).collect();
    let lost = "disconnect when=next name='lost answer' on='kind:request tool:charge_account' \
                at=before-final times=2";
    assert_eq!(words, [lost, "delay on=kind:result ms=2000 jitter=500 times=always chance=0.25"]);
    assert_eq!(recipe.seed, Some(7));
    let words: Vec<String> = recipe.expectations.iter().map(ToString::to_string).collect();
    let retries = "after \"lost answer\": the client retries with a new id within 1000 ms";
    assert_eq!(words, [retries, "nothing is found that fails"]);
    assert_eq!(Recipe::parse("").unwrap(), Recipe::default());
}

#[test]
fn what_is_wrong_is_told_with_line_column_and_what_is_allowed() {
    let cases = [
        ("sed = 7", "1:1: nothing is called `sed`; there are seed, [[fault]], [[expect]]"),
        ("seed = -1", "1:8: `seed`: give a whole number from 0"),
        ("seed = ", "1:8: "),
        ("[fault]\ndo = 'drop'", "1:1: `fault` is a list of tables: [[fault]]"),
        ("\n[[fault]]\non = 'x'", "2:1: `do` is missing"),
        ("[[fault]]\ndo = 'dorp'", "2:6: no verb `dorp`; there are hold, drop,"),
        ("[[fault]]\ndo = 'status'", "1:1: `status` is no rule"),
        ("[[fault]]\ndo = 'drop'\nheld = 3", "3:8: `held`: a fault always waits"),
        ("[[fault]]\ndo = 'cancel'\nwhen = 'now'", "3:8: `when`: a fault always waits"),
        ("[[fault]]\ndo = 'delay'\nms = true", "3:6: `ms`: give a time"),
        ("[[fault]]\ndo = 'delay'\nms = [3]", "3:6: `ms` is a text, a number"),
        ("[[fault]]\ndo = 'drop'\n  on = 'id:('", "3:8: `on`: filter, column"),
        ("[[fault]]\ndo = 'drop'\nname = 'a\"b'", "3:8: `name`: no quotes"),
        (
            "[[fault]]\ndo = 'drop'\nname = 'a'\n[[fault]]\ndo = 'drop'\nname = 'a'",
            "6:8: `name`: another fault is called \"a\"",
        ),
        (
            "[[expect]]\nthat = 'peace'",
            "2:8: nothing that can be expected is called `peace`; there are hits,",
        ),
        ("[[expect]]\nthat = 'hits'", "1:1: `hits` needs `fault`"),
        (
            "[[fault]]\ndo = 'drop'\nname = 'a'\n[[expect]]\nthat = 'hits'\nfault = 'b'",
            "6:9: no fault is called \"b\"; there are: a",
        ),
        ("[[expect]]\nthat = 'verdict'\nfault = 'a'\nis = 'won'", "4:6: `is`: give complete_won, cancel_won"),
        ("[[expect]]\nthat = 'finding'", "1:1: `finding` needs `rule`"),
        ("[[expect]]\nthat = 'hits'\nfault = 'a'\nleast = 3\nmost = 2", "5:8: `most`: is below `least`"),
    ];
    for (text, expected) in cases {
        let error = Recipe::parse(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}
