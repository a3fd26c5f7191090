"""Fails if a route of a translated template can be called without a checked token, but for the console's page and assets.

A route is closed if every security scheme it accepts is a JWT authorizer of its API that reads the
Authorization header and names an issuer and an audience.
"""

import json
import sys

# These routes show nothing of the bank, and a browser loads them before anybody has signed in.
PUBLIC = {"get /console", "get /console/assets/{asset}"}


def checks_tokens(scheme):
    """Returns whether a security scheme is such an authorizer."""
    authorizer = scheme.get("x-amazon-apigateway-authorizer", {})
    jwt = authorizer.get("jwtConfiguration", {})
    return (
        authorizer.get("type") == "jwt"
        and authorizer.get("identitySource") == "$request.header.Authorization"
        and bool(jwt.get("issuer"))
        and bool(jwt.get("audience"))
    )


def is_closed(schemes, security):
    """Returns whether every entry of a route's security requires a checked token."""
    is_checked = lambda name: checks_tokens(schemes.get(name, {}))
    return bool(security) and all(entry and all(map(is_checked, entry)) for entry in security)


with open(sys.argv[1], encoding="utf-8") as file:
    resources = json.load(file)["Resources"].values()
# The transform writes the API's routes into its body. Routes outside of it would not be checked here.
beside = [r["Type"] for r in resources if r["Type"] in ("AWS::ApiGatewayV2::Route", "AWS::Lambda::Url")]
if beside:
    sys.exit(f"routes outside of the API's body are not checked: {', '.join(beside)}")
bodies = [r["Properties"]["Body"] for r in resources if r["Type"] == "AWS::ApiGatewayV2::Api"]
routes = [
    (f"{method} {path}", body.get("components", {}).get("securitySchemes", {}), route.get("security"))
    for body in bodies
    for path, methods in body["paths"].items()
    for method, route in methods.items()
]
open_routes = {name for name, schemes, security in routes if not is_closed(schemes, security)}
if open_routes != PUBLIC or not routes:
    wrong = ", ".join(sorted(open_routes ^ PUBLIC))
    sys.exit(f"open to the world, or closed to it: {wrong}" if routes else "the template has no routes")
print(f"each of {len(routes)} routes needs a token, but {', '.join(sorted(PUBLIC))}")
