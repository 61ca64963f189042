//! What reads, what it picks, and what it says when it does not read.

use proptest::prelude::*;

use super::*;

/// One call, as a filter sees it.
struct Sample;

impl Fields for Sample {
    fn field(&self, field: Field) -> Option<Value<'_>> {
        let text = |text: &'static str| Some(Value::Text(Cow::Borrowed(text)));
        match field {
            Field::Method => text("tools/call"),
            Field::Target | Field::Tool => text("Slow_Echo"),
            Field::Id => text("41"),
            Field::State => text("ok"),
            Field::Era => text("2025-11-25"),
            Field::Duration => Some(Value::Number(600_000_000)),
            Field::Size => Some(Value::Number(70_000)),
            Field::Code => Some(Value::Number(-32020)),
            _ => None,
        }
    }

    fn is(&self, word: Is) -> bool {
        word == Is::Late
    }

    fn has_text(&self, lower: &str) -> bool {
        ["tools/call", "Slow_Echo", "41"].iter().any(|text| contains_ignoring_case(text, lower))
    }
}

#[test]
fn a_filter_picks_what_it_says() {
    let cases = [
        ("", true),
        ("method:tools/call", true),
        ("METHOD:Tools/Call tool==slow_echo", true),
        ("method:tools/list", false),
        ("echo", true),
        ("\"slow_e\" 41", true),
        ("-echo", false),
        ("not echo or is:late", true),
        ("not (echo or is:late)", false),
        ("is:open", false),
        ("dur>500ms size>64KiB", true),
        ("dur > 0.6s", false),
        ("dur >= 0.6s and dur < 1m", true),
        ("size<=70000", true),
        ("code:-32020", true),
        ("status", false),
        ("status!=200", false),
        ("-status:200", true),
        ("era>=2025-06-18", true),
        ("era<2025-06-18", false),
        ("target contains ECHO", true),
        ("target contains \"o e\"", false),
        ("is:open or (is:late echo)", true),
        ("file:///a", false),
    ];
    for (text, expected) in cases {
        let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(filter.matches(&Sample), expected, "{text}");
    }
}

#[test]
fn errors_say_where_and_what_was_meant() {
    let cases = [
        ("metod:x", "column 1: no field `metod`: did you mean `method`?; put plain text into quotes"),
        (
            "echo is:opne",
            "column 9: `is:` takes open, late, error, cancelled, lost, retry, injected, invalid: did you mean `open`?",
        ),
        ("dur>500", "column 5: `500` is no duration: write 250ms, 2s or 1.5m"),
        ("size>x", "column 6: `x` is no size: write 100, 64KiB or 1MB"),
        ("status:ok", "column 8: `status` is a whole number, not `ok`"),
        ("method>a", "column 8: `method` is text: compare it with :, ==, != or contains"),
        (
            "state:lots",
            "column 7: `state` is one of delivered, progressing, ok, error, input, cancelled, disconnected, lost, unresolved: did you mean `lost`?",
        ),
        ("dir<c2s", "column 5: `dir` has no order: compare it with : or !="),
        ("(a or b", "column 1: this bracket is not closed; put text with brackets into quotes"),
        ("a)", "column 2: this bracket closes nothing; put text with brackets into quotes"),
        ("ä \"b", "column 3: this quote is not closed"),
        ("a or", "column 5: a term is missing after `or`"),
        ("a and", "column 6: a term is missing after `and`"),
        ("not", "column 4: a term is missing after `not`"),
        ("tool:", "column 6: a value is missing; write \"\" for an empty one"),
    ];
    for (text, expected) in cases {
        assert_eq!(
            Filter::parse(text).map_err(|error| error.to_string()),
            Err(expected.to_owned()),
            "{text}"
        );
    }
}

#[test]
fn a_filter_prints_in_its_plainest_form() {
    let cases = [
        ("a and b", "a b"),
        ("not a or b and c", "-a or (b c)"),
        ("dur >= 1500ms", "dur>=1500ms"),
        ("dur<120s", "dur<2m"),
        ("size == 65536", "size:64KiB"),
        ("size>0", "size>0B"),
        ("\"or\"", "\"or\""),
        ("\"method\"", "\"method\""),
        ("target contains \"a b\"", "target contains \"a b\""),
    ];
    for (text, expected) in cases {
        assert_eq!(Filter::parse(text).unwrap().to_string(), expected);
    }
}

#[test]
fn every_field_and_word_is_documented() {
    let page = include_str!("../../docs/filter.md");
    for name in Field::names().chain(Is::ALL.iter().map(|(_, name)| *name)) {
        assert!(page.contains(&format!("`{name}`")), "docs/filter.md lacks {name}");
    }
    let examples = page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    for example in examples.lines() {
        assert!(Filter::parse(example).is_ok(), "{example}");
    }
}

fn any_expr() -> impl Strategy<Value = Expr> {
    let text = "[a-z\" \\\\():<>=!-]{0,8}";
    let number = any::<u32>().prop_map(i128::from);
    let leaf = prop_oneof![
        text.prop_map(Expr::Word),
        prop::sample::select(Is::ALL.to_vec()).prop_map(|(word, _)| Expr::Is(word)),
        prop::sample::select(Field::ALL.to_vec()).prop_map(|(field, _, _)| Expr::Has(field)),
        (any::<bool>(), text).prop_map(|(flag, text)| {
            let op = if flag { Op::Contains } else { Op::NotEqual };
            Expr::Compare(Field::Target, op, Literal::Text(text))
        }),
        (prop::sample::select(vec![Field::Duration, Field::Size, Field::Status]), number)
            .prop_map(|(field, number)| Expr::Compare(field, Op::GreaterOrEqual, Literal::Number(number))),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(Expr::All),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Expr::Any),
            inner.prop_map(|term| Expr::Not(Box::new(term))),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_printed_reads_as_the_same_filter(expr in any_expr()) {
        let filter = Filter(expr);
        let text = filter.to_string();
        let again = Filter::parse(&text).map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
        prop_assert_eq!(&again, &filter, "{}", text);
        prop_assert_eq!(again.to_string(), text);
    }

    #[test]
    fn any_text_reads_or_says_why(text in "\\PC{0,60}") {
        if let Ok(filter) = Filter::parse(&text) {
            let printed = filter.to_string();
            prop_assert_eq!(Filter::parse(&printed).map(|again| again.to_string()), Ok(printed));
        }
    }

    #[test]
    fn any_nesting_reads_or_says_why(text in "[(-]{0,200}") {
        let _ = Filter::parse(&text);
    }
}
