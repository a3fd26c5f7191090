//! Roles: a call is allowed if one statement allows it, and roles in an unknown form are errors.

use super::*;

/// The properties of a role with these statements.
fn role(statements: &Value) -> Value {
    json!({
        "AssumeRolePolicyDocument": { "Version": "2012-10-17", "Statement": [
            { "Effect": "Allow", "Principal": { "Service": "lambda.amazonaws.com" }, "Action": "sts:AssumeRole" },
        ] },
        "Policies": [{ "PolicyName": "calls", "PolicyDocument": { "Statement": statements } }],
    })
}

fn table() -> Value {
    json!({ "!GetAtt": "PaymentsTable.Arn" })
}

fn only(keys: &Value) -> Value {
    json!({ "ForAllValues:StringLike": { "dynamodb:LeadingKeys": keys } })
}

#[test]
fn a_role_allows_what_one_statement_allows() -> Result<()> {
    let reads = |keys: Value| json!({ "Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": table(), "Condition": only(&keys) });
    let role = Role::parse(&role(&json!([reads(json!(["A#*", "B"])), reads(json!("C#*"))])), &Value::Null)?;
    for (partitions, allowed) in [
        (&["A#1", "A#2", "B"] as &[&str], true),
        (&["C#1"], true),
        (&["A#1", "C#1"], false),
        (&["B#1"], false),
        (&["X"], false),
    ] {
        let partitions: Vec<String> = partitions.iter().map(|&key| key.to_owned()).collect();
        assert_eq!(role.allows("dynamodb:GetItem", "PaymentsTable", &partitions), allowed, "{partitions:?}");
        assert!(!role.allows("dynamodb:GetItem", "HistoryTable", &partitions));
        assert!(!role.allows("dynamodb:Query", "PaymentsTable", &partitions));
    }
    Ok(())
}

#[test]
fn a_transaction_is_allowed_by_one_statement() -> Result<()> {
    let writes = |actions: Value, keys: Value| json!({ "Effect": "Allow", "Action": actions, "Resource": table(), "Condition": only(&keys) });
    let both = ["dynamodb:DeleteItem", "dynamodb:UpdateItem"];
    let keys = ["COUNTS#1", "CHECKPOINT#x"].map(str::to_owned);
    for (statements, allowed) in [
        (json!([writes(json!(both), json!(["COUNTS#*", "CHECKPOINT#x"]))]), true),
        // Each action alone would be allowed.
        (json!([writes(json!(both[0]), json!("CHECKPOINT#x")), writes(json!(both[1]), json!("COUNTS#*"))]), false),
        (
            json!([
                writes(json!(both[0]), json!(["COUNTS#*", "CHECKPOINT#x"])),
                writes(json!(both[1]), json!("COUNTS#*"))
            ]),
            false,
        ),
    ] {
        let role = Role::parse(&role(&statements), &Value::Null)?;
        assert_eq!(role.allows_together(&both, "PaymentsTable", &keys), allowed, "{statements}");
    }
    Ok(())
}

#[test]
fn an_unknown_policy_is_an_error() {
    let statement = |changed: &str, value: Value| {
        let mut statement = json!({ "Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": table() });
        statement[changed] = value;
        statement
    };
    let read = |statement: Value| Role::parse(&role(&json!([statement])), &Value::Null);
    assert!(read(statement("Sid", json!("Reads"))).is_ok());
    let equals = json!({ "ForAllValues:StringEquals": { "dynamodb:LeadingKeys": ["A#*"] } });
    for (changed, value) in [
        ("Effect", json!("Deny")),
        ("Action", json!("dynamodb:*")),
        ("NotAction", json!("dynamodb:GetItem")),
        ("Resource", json!("*")),
        ("Condition", json!({ "Null": { "dynamodb:LeadingKeys": "false" } })),
        ("Condition", equals),
    ] {
        assert!(read(statement(changed, value.clone())).is_err(), "{changed}: {value}");
    }
    for (changed, value) in [
        ("ManagedPolicyArns", json!(["arn:aws:iam::aws:policy/service-role/AWSLambdaSQSQueueExecutionRole"])),
        (
            "AssumeRolePolicyDocument",
            json!({ "Statement": [{ "Effect": "Allow", "Principal": "*", "Action": "sts:AssumeRole" }] }),
        ),
        ("PermissionsBoundary", json!("arn")),
    ] {
        let mut role = role(&json!([statement("Sid", json!("Reads"))]));
        role[changed] = value;
        assert!(Role::parse(&role, &Value::Null).is_err(), "{changed}");
    }
}

#[test]
fn a_function_has_a_role_of_its_own() {
    let template = |functions: Value| {
        let mut resources = json!({ "R": { "Type": "AWS::IAM::Role", "Properties": role(&json!([])) } });
        for (name, properties) in functions.as_object().unwrap() {
            resources[name] = json!({
                "Type": "AWS::Serverless::Function", "Properties": properties,
                "Metadata": { "BuildProperties": { "Binary": name } },
            });
        }
        json!({ "Resources": resources })
    };
    let own = json!({ "!GetAtt": "R.Arn" });
    assert!(Role::all(&template(json!({ "a": { "Role": own } }))).is_ok());
    for functions in [
        json!({ "a": { "Policies": ["AmazonDynamoDBFullAccess"] } }),
        json!({ "a": { "Role": own, "Policies": [] } }),
        json!({ "a": { "Role": own }, "b": { "Role": own } }),
        json!({ "a": { "Role": { "!GetAtt": "S.Arn" } } }),
    ] {
        assert!(Role::all(&template(functions.clone())).is_err(), "{functions}");
    }
}
