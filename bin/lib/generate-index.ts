// The first page of the reference.

/** The page as Markdown. */
export function indexPage(): string {
  return `# Reference

These pages are generated from the code, so they state what this version does.

- [API](api/README.md): every operation, with inputs, an example and error codes; [objects](api/objects.md) that several
  operations return. The same as a document for programs: [openapi.json](../api/openapi.json).
- [Errors](errors.md): every error code of the API.
- [Variables](variables.md): environment variables of a console process.
- [Metrics](metrics.md): metrics of console processes and nodes.
- [Expressions](expressions.md): fields, operators, functions, limits and errors of the rule language.`;
}
