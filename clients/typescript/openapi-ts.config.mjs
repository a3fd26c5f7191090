// The settings of @hey-api/openapi-ts.
export default {
  input: "openapi.json",
  output: { path: "src/generated", importFileExtension: ".js" },
  plugins: [
    "@hey-api/client-fetch",
    "@hey-api/sdk",
    "@hey-api/typescript",
    // Only for the types: integers of 64 bits are of the type bigint. The client parses responses itself.
    { name: "@hey-api/transformers", bigInt: true, dates: false },
  ],
};
