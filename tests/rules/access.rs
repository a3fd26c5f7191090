//! Compares the template's settings of tokens with the functions.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use payments_http::Scope;
use payments_http::routes::all;
use serde_json::{Value, json};

use crate::template::{API, FUNCTION, http_events, resources, template, text};

const CLIENT: &str = "AWS::Cognito::UserPoolClient";
const RESOURCE_SERVER: &str = "AWS::Cognito::UserPoolResourceServer";

/// The only client of a stack in dev.
const ONE_CLIENT: &str = "ChannelClient";

// The places of both stages in an `!If` on `IsProd`.
const PROD: usize = 1;
const DEV: usize = 2;

/// The variable of `sam local` that allows requests without an authorizer.
const SAM_LOCAL: &str = "AWS_SAM_LOCAL";

#[test]
fn no_deployed_function_poses_as_sam_local() -> Result<()> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    for file in ["template.yaml", "samconfig.toml"] {
        let text = std::fs::read_to_string(format!("{root}/{file}")).context(file)?;
        assert!(!text.contains(SAM_LOCAL), "{file} names {SAM_LOCAL}, which allows requests without a token");
    }
    Ok(())
}

#[test]
fn the_templates_issuer_has_the_scopes_of_the_code() -> Result<()> {
    let template = template()?;
    let known: BTreeSet<String> = Scope::ALL.iter().map(|scope| scope.as_str().to_owned()).collect();
    for (name, server) in resources(&template, RESOURCE_SERVER)? {
        let prefix = text(&server["Properties"]["Identifier"])?;
        let scopes = server["Properties"]["Scopes"].as_array().context("no scopes")?.iter();
        let scopes = scopes.map(|scope| Ok(format!("{prefix}/{}", text(&scope["ScopeName"])?)));
        assert_eq!(scopes.collect::<Result<BTreeSet<_>>>()?, known, "{name}");
    }
    let clients = resources(&template, CLIENT)?;
    let of_stage = |stage| clients.iter().flat_map(move |(_, client)| scopes_of(client, stage));
    let granted: BTreeSet<&str> = of_stage(PROD).chain(of_stage(DEV)).collect();
    assert!(granted.iter().all(|scope| known.contains(*scope)), "{granted:?}");
    // The one that no route requires is reserved: a provider's consents and a client's settings name it.
    let required: BTreeSet<&str> = all().filter_map(|spec| spec.scope).map(Scope::as_str).collect();
    let reserved = Scope::Files.as_str();
    assert!(known.contains(reserved) && !required.contains(reserved) && !granted.contains(reserved), "{reserved}");
    // Nobody signs in at the template's own issuer, so no client of it acts in the console, or approves. And a secret opens one kind of harm.
    for of_people in [Scope::Operate, Scope::Approve].map(Scope::as_str) {
        assert!(required.contains(of_people) && !granted.contains(of_people), "{granted:?}");
    }
    let feed = clients.iter().find(|(name, _)| *name == "FeedClient").context("no client of the feed")?;
    assert_eq!(scopes_of(feed.1, PROD), [Scope::Feed.as_str()]);
    Ok(())
}

/// Each machine client costs $6 a month.
#[test]
fn dev_has_one_machine_client_with_the_scopes_of_all() -> Result<()> {
    let template = template()?;
    let (mut of_prod, mut of_dev) = (BTreeSet::new(), BTreeSet::new());
    for (name, client) in resources(&template, CLIENT)? {
        let wanted = if name == ONE_CLIENT { "HasOwnIssuer" } else { "HasClientOfEach" };
        assert_eq!(client["Condition"], wanted, "{name}");
        of_prod.extend(scopes_of(client, PROD).into_iter().map(str::to_owned));
        if name == ONE_CLIENT {
            of_dev.extend(scopes_of(client, DEV).into_iter().map(str::to_owned));
        } else {
            let id = &template["Outputs"][format!("{name}Id")]["Value"];
            assert_eq!(*id, json!({ "!If": ["IsProd", { "!Ref": name }, { "!Ref": ONE_CLIENT }] }), "{name}");
        }
    }
    assert_eq!(of_dev, of_prod);
    Ok(())
}

#[test]
fn the_templates_clients_are_its_audience_and_its_machines() -> Result<()> {
    let template = template()?;
    let wanted: Vec<Value> = resources(&template, CLIENT)?.iter().map(|(name, _)| json!({ "!Ref": name })).collect();
    let one = json!({ "!Ref": ONE_CLIENT });
    for (name, api) in resources(&template, API)? {
        for authorizer in api["Properties"]["Auth"]["Authorizers"].as_object().context("no authorizers")?.values() {
            let own = &authorizer["JwtConfiguration"]["audience"]["!If"][1];
            assert_eq!(*own, json!({ "!If": ["IsProd", wanted, [one]] }), "{name}: the audience");
        }
    }
    // All of them are machines.
    for (name, function) in resources(&template, FUNCTION)? {
        let machines = &function["Properties"]["Environment"]["Variables"]["MACHINE_CLIENTS"];
        if http_events(function).next().is_none() {
            assert_eq!(*machines, Value::Null, "{name}");
            continue;
        }
        let own = json!({ "!If": ["IsProd", { "!Join": [",", wanted] }, one] });
        assert_eq!((&machines["!If"][0], &machines["!If"][1]), (&json!("HasOwnIssuer"), &own), "{name}");
        let named = ["MachineClients", "ConsoleClientId", "ConsoleOperateClientId"].map(|id| json!({ "!Ref": id }));
        // Anybody whom the provider allows can sign in with the console's clients, so elsewhere they are not machines.
        let known = if name == "ConsoleFunction" { json!({ "!Join": [",", named] }) } else { named[0].clone() };
        assert_eq!(machines["!If"][2], known, "{name}");
    }
    Ok(())
}

/// The scopes of a client in a stage.
fn scopes_of(client: &Value, stage: usize) -> Vec<&str> {
    let scopes = &client["Properties"]["AllowedOAuthScopes"];
    let scopes = if scopes["!If"][0] == "IsProd" { &scopes["!If"][stage] } else { scopes };
    scopes.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn every_http_function_gets_the_account_claim() -> Result<()> {
    for (name, function) in resources(&template()?, FUNCTION)? {
        let claim = &function["Properties"]["Environment"]["Variables"]["ACCOUNT_CLAIM"];
        let wanted =
            if http_events(function).next().is_some() { json!({ "!Ref": "AccountClaim" }) } else { Value::Null };
        assert_eq!(*claim, wanted, "{name}");
    }
    Ok(())
}
