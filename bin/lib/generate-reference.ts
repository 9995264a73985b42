// The reference for people: the API from the OpenAPI document, and pages of other generators.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ERRORS } from '../../contract/errors.ts';
import type { JsonSchema } from '../../contract/examples.ts';
import { type ApiDocument, type Endpoint, EXAMPLE_URL, endpoints, referred } from './api-document.ts';
import { indexPage } from './generate-index.ts';
import { languagePage } from './generate-language.ts';
import { metricsPage } from './generate-metrics.ts';
import { variablesPage } from './generate-variables.ts';
import { cell, table } from './markdown.ts';
import { limitsOf } from './schema-types.ts';

const NOTE = '<!-- Written by `npm run generate` from the code. Changes here are lost. -->\n';

/** Writes the pages of the reference into the folder; below api/ an index, objects.md and a page per group of operations. */
export function generateReference(document: ApiDocument, folder: string): void {
  mkdirSync(join(folder, 'api'), { recursive: true });
  const all = endpoints(document);
  const general = generalCodes(all);
  const groups = Map.groupBy(all, ({ operation }) => operation.tags[0]!);
  const pages = new Map<string, string>([
    ['README.md', indexPage()],
    ['errors.md', errorsPage(all)],
    ['expressions.md', languagePage()],
    ['metrics.md', metricsPage()],
    ['variables.md', variablesPage()],
    ['api/README.md', index(groups, general)],
    ['api/objects.md', objectsPage(document)],
  ]);
  for (const [group, members] of groups) pages.set(`api/${fileOf(group)}.md`, groupPage(group, members, general));
  for (const [name, text] of pages) writeFileSync(join(folder, name), `${NOTE}\n${text.trimEnd()}\n`);
}

/** accessKeys -> access-keys */
const fileOf = (group: string) => group.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
/** The address that a heading gets where Markdown is shown. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^a-z0-9_ -]/g, '')
    .replaceAll(' ', '-');
const headingOf = ({ method, path }: Endpoint) => `${method} ${path}`;

function index(groups: Map<string, Endpoint[]>, general: readonly string[]): string {
  const parts = [...groups]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([group, members]) => {
      const page = `${fileOf(group)}.md`;
      const rows = members.map((each) => [
        `[\`${headingOf(each)}\`](${page}#${anchorOf(headingOf(each))})`,
        cell(each.operation.summary),
      ]);
      return `## [${group}](${page})\n\n${table(['Operation', 'Summary'], rows)}`;
    });
  return `# API reference

This page lists every operation below \`/api/v1\`.

- Keys, limits, idempotency, lists and errors in general: [The API](../../api.md)
- Objects that several operations return: [objects](objects.md)
- Error codes: [errors](../errors.md)
- Rule expressions: [expressions](../expressions.md)

Every operation can also return ${general.map((code) => `\`${code}\``).join(', ')}.

${parts.join('\n')}`;
}

function groupPage(group: string, members: readonly Endpoint[], general: readonly string[]): string {
  return `# ${group}\n\n${members.map((each) => operationPart(each, general)).join('\n')}`;
}

function operationPart(endpoint: Endpoint, general: readonly string[]): string {
  const { operation, parameters, body, status, success } = endpoint;
  const inputs = [
    ...parameters.map(({ name, in: place, required, schema, description }) => [
      `\`${name}\``,
      place,
      required ? 'yes' : '',
      cell(typeWords(schema)),
      cell(about({ ...schema, description: schema.description ?? description ?? '' })),
    ]),
    ...(body ? fieldRows(body.schema, '').map(([name = '', ...rest]) => [name, 'body', ...rest]) : []),
  ];
  const codes = endpoint.errors.flatMap((each) => each.codes.filter((code) => !general.includes(code)));
  const parts = [
    `## ${headingOf(endpoint)}\n\n${cell(operation.summary)} ${cell(operation.description)} Operation \`${operation.operationId}\`.\n`,
    inputs.length === 0 ? '' : table(['Input', 'In', 'Required', 'Type', 'Description'], inputs),
    `\`\`\`sh\n${curl(endpoint)}\n\`\`\`\n`,
    `Response ${status}${objectLink(success.schema)}:\n\n${exampleBlock(endpoint)}`,
    responseFields(success.schema),
    codes.length === 0 ? '' : `Errors: ${codes.map((code) => `\`${code}\` (${statusOf(code)})`).join(', ')}.\n`,
  ];
  return parts.filter((part) => part !== '').join('\n');
}

/** The example of a successful response: JSON, or text with its description. */
function exampleBlock({ media, success: { schema, example } }: Endpoint): string {
  if (media === 'application/json') return `\`\`\`json\n${JSON.stringify(example, null, 2)}\n\`\`\`\n`;
  const text = String(example).replaceAll('\r\n', '\n').trimEnd();
  return `\`\`\`${media.split('/')[1]}\n${text}\n\`\`\`\n\n${cell(about(schema))}\n`;
}

/** Codes that every operation can return. */
function generalCodes(members: readonly Endpoint[]): string[] {
  const lists = members.map(({ errors }) => errors.flatMap(({ codes }) => codes));
  return Object.keys(ERRORS).filter((code) => lists.every((codes) => codes.includes(code)));
}

function objectLink(schema: JsonSchema): string {
  const name = referred(schema);
  return name === undefined ? '' : `, ${linkTo(name)}`;
}

const linkTo = (name: string) => `[${name}](objects.md#${name.toLowerCase()})`;

/** Fields of a response that is not a named object. */
function responseFields(schema: JsonSchema): string {
  const rows = fieldRows(schema, '');
  return rows.length === 0 ? '' : table(['Field', 'Always', 'Type', 'Description'], rows);
}

/** The fields of an object, those of objects inside it under their path. */
function fieldRows(schema: JsonSchema, prefix: string): string[][] {
  const { properties = {}, required = [] } = schema;
  return Object.entries(properties).flatMap(([name, property]) => {
    const row = [
      `\`${prefix}${name}\``,
      required.includes(name) ? 'yes' : '',
      cell(typeWords(property)),
      cell(about(property)),
    ];
    return [row, ...insideRows(property, `${prefix}${name}`)];
  });
}

function insideRows(schema: JsonSchema, path: string): string[][] {
  const [member] = (schema.anyOf ?? []).filter(({ type }) => type !== 'null');
  const inside = schema.anyOf?.filter(({ type }) => type !== 'null').length === 1 ? member! : schema;
  if (inside.type === 'array' && inside.items) return insideRows(inside.items, `${path}[]`);
  return inside.type === 'object' ? fieldRows(inside, `${path}.`) : [];
}

function typeWords(schema: JsonSchema): string {
  const name = referred(schema);
  if (name !== undefined) return linkTo(name);
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.enum) return schema.enum.map((value) => `\`${JSON.stringify(value)}\``).join(' or ');
  if (schema.anyOf) return [...new Set(schema.anyOf.map(typeWords))].join(' or ');
  if (schema.type === 'array') return `array of ${typeWords(schema.items ?? {})}`;
  if (schema.format !== undefined) return schema.format;
  return schema.type ?? 'any';
}

function about(schema: JsonSchema): string {
  const pattern = typeof schema.pattern === 'string' ? `Pattern \`${schema.pattern}\`.` : '';
  return [schema.description, limitsOf(schema), pattern].filter((part) => part).join(' ');
}

function curl({ method, path, parameters, body, operation }: Endpoint): string {
  const filled = path.replaceAll(/\{([^}]+)\}/g, (_, name: string) => {
    return encodeURIComponent(String(parameters.find((each) => each.name === name)?.example));
  });
  const lines = [`curl -sS ${method === 'GET' ? '' : `-X ${method} `}'${EXAMPLE_URL}/api/v1${filled}'`];
  if (operation.security.length > 0) lines.push(`-H "x-api-key: $KEY"`);
  if (body)
    lines.push(`-H 'content-type: application/json'`, `-d '${JSON.stringify(body.example).replaceAll("'", "'\\''")}'`);
  return lines.join(' \\\n  ');
}

const statusOf = (code: string) => (ERRORS as Record<string, { status: number }>)[code]!.status;

function errorsPage(all: readonly Endpoint[]): string {
  const used = new Set(all.flatMap(({ errors }) => errors.flatMap(({ codes }) => codes)));
  const rows = Object.entries(ERRORS)
    .filter(([code]) => used.has(code))
    .map(([code, { status, message }]) => [`\`${code}\``, String(status), cell(message)]);
  return `# Errors\n\nDecide by \`code\` and \`data\`. Messages can change.\n\n${table(['Code', 'Status', 'Message'], rows)}`;
}

function objectsPage({ components }: ApiDocument): string {
  const parts = Object.entries(components.schemas)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .filter(([name]) => name !== 'Unmatched')
    .map(([name, schema]) => {
      const rows = fieldRows(schema, '');
      const text = rows.length > 0 ? table(['Field', 'Always', 'Type', 'Description'], rows) : `${typeWords(schema)}\n`;
      const description = about(schema);
      return `## ${name}\n\n${description === '' ? '' : `${cell(description)}\n\n`}${text}`;
    });
  return `# Objects\n\n${parts.join('\n')}`;
}
