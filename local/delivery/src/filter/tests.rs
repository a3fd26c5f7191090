//! Patterns against events, as tables.

use serde_json::json;

use super::*;

fn passes(pattern: &Value, event: &Value) -> bool {
    FilterCriteria::parse([pattern.to_string().as_str()]).unwrap().matches(event)
}

/// An update of a payment, in the shape in which Lambda sees it.
fn update() -> Value {
    json!({
        "eventName": "MODIFY",
        "dynamodb": {
            "Keys": {"pk": {"S": "ACCT#acc-1"}, "sk": {"S": "2026-12-01T09:30:00Z#626e"}},
            "OldImage": {"status": {"S": "SCHEDULED"}},
            "NewImage": {
                "status": {"S": "PENDING"},
                "attempt": {"N": "1"},
                "urgent": {"BOOL": true},
                "note": {"NULL": true},
                "tags": {"SS": ["a", "b"]},
                "trail": {"L": [{"M": {"by": {"S": "feed"}}}, {"M": {"by": {"S": "sweeper"}}}]},
                "empty": {"S": ""},
                "none": {"L": []},
            },
            "SizeBytes": 300,
        },
    })
}

#[test]
fn tests_on_an_attribute() {
    for (attribute, rule, want) in [
        ("status", json!({"S": ["PENDING"]}), true),
        ("status", json!({"S": ["SCHEDULED", "PENDING"]}), true),
        ("status", json!({"S": ["SCHEDULED"]}), false),
        ("status", json!({"S": ["pending"]}), false),
        ("status", json!({"S": [{"equals-ignore-case": "pending"}]}), true),
        ("status", json!({"S": [{"prefix": "PEN"}]}), true),
        ("status", json!({"S": [{"prefix": "pen"}]}), false),
        ("status", json!({"S": [{"suffix": "ING"}]}), true),
        ("status", json!({"N": ["PENDING"]}), false),
        ("status", json!({"S": [{"anything-but": "PENDING"}]}), false),
        ("status", json!({"S": [{"anything-but": ["FAILED", "PROCESSED"]}]}), true),
        ("status", json!({"S": [{"anything-but": "FAILED"}, "PENDING"]}), true),
        ("absent", json!({"S": [{"anything-but": "FAILED"}]}), false),
        ("absent", json!({"S": [{"exists": false}]}), true),
        ("absent", json!({"S": [{"exists": true}]}), false),
        ("absent", json!({"S": [{"exists": false}, "x"]}), true),
        ("status", json!({"S": [{"exists": true}]}), true),
        ("status", json!({"S": [{"exists": false}]}), false),
        ("status", json!({"S": [null]}), false),
        ("empty", json!({"S": [""]}), true),
        ("urgent", json!({"BOOL": [true]}), true),
        ("urgent", json!({"BOOL": ["true"]}), false),
        ("attempt", json!({"N": ["1"]}), true),
        ("attempt", json!({"N": [1]}), false),
        ("attempt", json!({"N": [{"numeric": ["=", 1]}]}), false),
        ("tags", json!({"SS": ["b"]}), true),
        ("tags", json!({"SS": ["c"]}), false),
        ("tags", json!({"SS": [{"anything-but": "a"}]}), true),
        ("tags", json!({"SS": [{"exists": true}]}), true),
        ("trail", json!({"L": {"M": {"by": {"S": ["sweeper"]}}}}), true),
        ("trail", json!({"L": {"M": {"by": {"S": ["settle"]}}}}), false),
        ("none", json!({"L": [{"exists": true}]}), false),
        ("none", json!({"L": {"S": [{"exists": false}]}}), true),
    ] {
        let pattern = json!({"dynamodb": {"NewImage": {attribute: rule}}});
        assert_eq!(passes(&pattern, &update()), want, "{pattern}");
    }
}

#[test]
fn tests_on_the_record() {
    for (pattern, want) in [
        (json!({"eventName": ["INSERT", "MODIFY"]}), true),
        (json!({"eventName": ["REMOVE"]}), false),
        (json!({"eventName": ["MODIFY"], "dynamodb": {"Keys": {"pk": {"S": [{"prefix": "ACCT#"}]}}}}), true),
        (json!({"eventName": ["INSERT"], "dynamodb": {"Keys": {"pk": {"S": [{"prefix": "ACCT#"}]}}}}), false),
        (json!({"dynamodb": {"SizeBytes": [300]}}), true),
        (json!({"dynamodb": {"SizeBytes": [300.0]}}), false),
        (json!({"dynamodb": {"SizeBytes": [{"numeric": ["=", 300.0]}]}}), true),
        (json!({"dynamodb": {"SizeBytes": [{"numeric": [">", 100, "<=", 300]}]}}), true),
        (json!({"dynamodb": {"SizeBytes": [{"numeric": [">", 300]}]}}), false),
        (json!({"dynamodb": {"SizeBytes": [{"numeric": [">=", 300]}]}}), true),
        (json!({"dynamodb": {"SizeBytes": [{"numeric": ["<", 300]}]}}), false),
        // An intermediate node is no leaf, so it does not exist.
        (json!({"dynamodb": {"NewImage": [{"exists": true}]}}), false),
        (json!({"dynamodb": {"NewImage": [{"exists": false}]}}), true),
        // Below what is not there, nothing is.
        (json!({"nothing": {"at": {"all": [{"exists": false}]}}}), true),
        (json!({"nothing": {"at": {"all": ["x"]}}}), false),
        // A scalar has no fields.
        (json!({"eventName": {"S": ["MODIFY"]}}), false),
    ] {
        assert_eq!(passes(&pattern, &update()), want, "{pattern}");
    }
}

#[test]
fn alternatives_across_fields() {
    let became_pending = json!({"dynamodb": {
        "NewImage": {"status": {"S": ["PENDING"]}},
        "$or": [
            {"OldImage": {"status": {"S": [{"anything-but": "PENDING"}]}}},
            {"OldImage": {"status": {"S": [{"exists": false}]}}},
        ],
    }});
    let mut event = update();
    assert!(passes(&became_pending, &event));
    event["dynamodb"]["OldImage"]["status"]["S"] = json!("PENDING");
    assert!(!passes(&became_pending, &event));
    event["dynamodb"].as_object_mut().unwrap().remove("OldImage");
    assert!(passes(&became_pending, &event), "an insert has no old image");
    event["dynamodb"]["NewImage"]["status"]["S"] = json!("SCHEDULED");
    assert!(!passes(&became_pending, &event));
}

#[test]
fn one_of_several_patterns_is_enough() {
    let criteria = FilterCriteria::parse([r#"{"eventName":["REMOVE"]}"#, r#"{"eventName":["MODIFY"]}"#]).unwrap();
    assert!(criteria.matches(&update()));
    assert!(!criteria.matches(&json!({"eventName": "INSERT"})));
    assert!(FilterCriteria::default().matches(&json!({"eventName": "INSERT"})), "no filter, no limit");
}

#[test]
fn what_aws_refuses_is_refused() {
    for (pattern, want) in [
        ("", "a filter pattern is JSON"),
        (r#"[{"eventName":["INSERT"=123}]"#, "a filter pattern is JSON"),
        (r#""single-string""#, r#"at "": a pattern is an object"#),
        ("{}", r#"at "": an object has at least one field"#),
        (r#"{"a":{}}"#, r#"at "a": an object has at least one field"#),
        (r#"{"a":[]}"#, r#"at "a": a list of values has at least one"#),
        (r#"{"a":"x"}"#, r#"at "a": a field is matched by a list"#),
        (r#"{"a":{"b":[["x"]]}}"#, r#"at "a.b": a value is not a list"#),
        (r#"{"a":[{"prefix":1}]}"#, r#"at "a": unknown operator"#),
        (r#"{"a":[{"wildcard":"*x"}]}"#, r#"at "a": unknown operator"#),
        (r#"{"a":[{"prefix":"x","suffix":"y"}]}"#, r#"at "a": a test has exactly one operator"#),
        (r#"{"a":[{"exists":"true"}]}"#, r#"at "a": unknown operator"#),
        (r#"{"a":[{"anything-but":{"prefix":"x"}}]}"#, r#"at "a": anything-but takes strings or numbers"#),
        (r#"{"a":[{"anything-but":[]}]}"#, r#"at "a": anything-but takes strings or numbers"#),
        (r#"{"a":[{"numeric":[">"]}]}"#, r#"at "a": numeric takes one or two comparisons"#),
        (r#"{"a":[{"numeric":["~",1]}]}"#, r#"at "a": numeric compares with"#),
        (r#"{"a":[{"numeric":[1,">"]}]}"#, r#"at "a": numeric takes pairs"#),
        (r#"{"$or":[{"a":["x"]}]}"#, r#"at "$or": $or has at least two alternatives"#),
        (r#"{"$or":[{"a":["x"]},"y"]}"#, r#"at "$or": an alternative is an object"#),
    ] {
        let error = FilterCriteria::parse([pattern]).unwrap_err().to_string();
        assert!(error.contains(want), "{pattern}: {error}");
    }
    let many = FilterCriteria::parse(std::iter::repeat_n(r#"{"a":["x"]}"#, 11));
    assert!(matches!(many, Err(FilterError::TooMany(11))));
}
