"""Fails when a route of a translated template can be called without an authorizer."""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    resources = json.load(file)["Resources"].values()
bodies = [r["Properties"]["Body"] for r in resources if r["Type"] == "AWS::ApiGatewayV2::Api"]
routes = [
    (f"{method} {path}", body["components"]["securitySchemes"], route.get("security"))
    for body in bodies
    for path, methods in body["paths"].items()
    for method, route in methods.items()
]
is_closed = lambda schemes, security: security and all(set(entry) & set(schemes) for entry in security)
open_routes = [name for name, schemes, security in routes if not is_closed(schemes, security)]
if open_routes or not routes:
    sys.exit(f"open to the world: {', '.join(open_routes)}" if routes else "there are no routes")
print(f"each of {len(routes)} routes has an authorizer")
