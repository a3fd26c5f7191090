// Starts Swagger UI on our description, in the colours that the reader prefers, with the details of responses folded.

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const colour = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", colour);
colour();

/** Wraps a component in details, if `isFolded` says so of its properties. */
const folded = (title, isFolded) => (Original, { React }) => (props) => {
  const original = React.createElement(Original, props);
  return isFolded(props) ? React.createElement("details", null, React.createElement("summary", null, title), original) : original;
};

window.ui = SwaggerUIBundle({
  url: "/openapi.yaml",
  dom_id: "#swagger-ui",
  deepLinking: true,
  defaultModelsExpandDepth: -1,
  // The bundle's other layout has a bar that loads any other description.
  layout: "BaseLayout",
  plugins: [
    {
      wrapComponents: {
        headers: folded("Headers", ({ headers }) => headers?.size > 0),
        // Only those of responses are asked to include what is read-only.
        modelExample: folded("Example and schema", ({ includeReadOnly }) => includeReadOnly),
      },
    },
  ],
  // The validator is a service on the internet.
  validatorUrl: "none",
});
