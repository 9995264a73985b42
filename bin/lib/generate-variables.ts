// The page of environment variables in the reference, from the table that the console parses them with.
import { VARIABLES } from '../../runtime/env-variables.ts';
import { cell, code, table } from './markdown.ts';

/** The page as Markdown. */
export function variablesPage(): string {
  const rows = VARIABLES.map((variable) => [
    code(variable.name),
    cell(variable.meaning),
    cell(variable.accepts),
    defaultOf(variable),
  ]);
  return `# Environment variables of a console process

A console process reads these variables once, at start. It reports every missing or malformed variable together, and exits.
\`npm start\` fills in the required ones on a developer's machine, and none with \`NODE_ENV=production\`.

${table(['Variable', 'Meaning', 'Accepts', 'Default'], rows)}
An edge node is configured by options: [Edge nodes](../edge-node.md).`;
}

function defaultOf(variable: (typeof VARIABLES)[number]): string {
  if (variable.required) return 'required';
  if (variable.default === null) return '';
  return variable.default === '' ? 'empty' : code(variable.default);
}
