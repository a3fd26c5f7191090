// The settings of @hey-api/openapi-ts.
export default {
  input: "openapi.json",
  output: { path: "src/generated", importFileExtension: ".js" },
  plugins: [
    "@hey-api/client-fetch",
    "@hey-api/sdk",
    // Integers are numbers, which hold every amount. The client parses responses itself.
    "@hey-api/typescript",
  ],
};
