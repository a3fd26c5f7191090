//! The API's own host name: with its certificate, or not at all.

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::template::template;

#[test]
fn the_api_has_a_name_of_its_own_with_a_certificate_or_none() -> Result<()> {
    let template = template()?;
    let missing = |name: &str| json!({ "!Equals": [{ "!Ref": name }, ""] });
    let given = |name: &str| json!({ "!Not": [missing(name)] });
    let rules = template["Rules"].as_object().context("no rules")?;
    let (domain, certificate) = ("ApiDomain", "ApiCertificate");
    for (when, then) in [(missing(domain), missing(certificate)), (given(domain), given(certificate))] {
        let rule = rules.values().find(|rule| rule["RuleCondition"] == when).context("no rule")?;
        assert_eq!(rule["Assertions"][0]["Assert"], then, "{rule}");
    }
    assert_eq!(template["Conditions"]["HasApiDomain"], given("ApiDomain"));
    let [host, mapping] = ["ApiHost", "ApiMapping"].map(|name| &template["Resources"][name]);
    for resource in [host, mapping, &template["Outputs"]["ApiDnsName"]] {
        assert_eq!(resource["Condition"], "HasApiDomain", "{resource}");
    }
    let wanted = json!({ "ApiId": { "!Ref": "PaymentsApi" }, "DomainName": { "!Ref": "ApiHost" }, "Stage": { "!Ref": "PaymentsApi.Stage" } });
    assert_eq!(mapping["Properties"], wanted);
    let url = &template["Outputs"]["ApiUrl"]["Value"]["!If"];
    assert_eq!((&url[0], &url[1]), (&json!("HasApiDomain"), &json!({ "!Sub": "https://${ApiDomain}" })));
    for name in ["ApiDomain", "ApiCertificate"] {
        assert_eq!(template["Parameters"][name]["Default"], "", "{name}");
    }
    Ok(())
}
