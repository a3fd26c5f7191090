"""Fails when a route of a translated template can be called without a token that was checked.

A route is closed when each of its ways in is a JWT authorizer of its API that reads the
Authorization header and names an issuer and an audience.
"""

import json
import sys


def checks_tokens(scheme):
    """Whether a security scheme is such an authorizer."""
    authorizer = scheme.get("x-amazon-apigateway-authorizer", {})
    jwt = authorizer.get("jwtConfiguration", {})
    return (
        authorizer.get("type") == "jwt"
        and authorizer.get("identitySource") == "$request.header.Authorization"
        and bool(jwt.get("issuer"))
        and bool(jwt.get("audience"))
    )


def is_closed(schemes, security):
    """Whether a route with this security wants a token whichever of its entries is taken."""
    is_checked = lambda name: checks_tokens(schemes.get(name, {}))
    return bool(security) and all(entry and all(map(is_checked, entry)) for entry in security)


with open(sys.argv[1], encoding="utf-8") as file:
    resources = json.load(file)["Resources"].values()
# Whatever the transform makes of the API's routes is in its body; routes beside it would not be looked at here.
beside = [r["Type"] for r in resources if r["Type"] in ("AWS::ApiGatewayV2::Route", "AWS::Lambda::Url")]
if beside:
    sys.exit(f"routes that are not checked: {', '.join(beside)}")
bodies = [r["Properties"]["Body"] for r in resources if r["Type"] == "AWS::ApiGatewayV2::Api"]
routes = [
    (f"{method} {path}", body.get("components", {}).get("securitySchemes", {}), route.get("security"))
    for body in bodies
    for path, methods in body["paths"].items()
    for method, route in methods.items()
]
open_routes = [name for name, schemes, security in routes if not is_closed(schemes, security)]
if open_routes or not routes:
    sys.exit(f"open to the world: {', '.join(open_routes)}" if routes else "there are no routes")
print(f"each of {len(routes)} routes wants a token")
