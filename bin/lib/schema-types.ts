// JSON Schema as types of TypeScript.
import type { JsonSchema } from '../../contract/examples.ts';
import { referred } from './api-document.ts';

/** Keywords that either become part of the type or of its comment, or only say what is refused at run time. */
const KNOWN = new Set([
  'x-error-code',
  '$ref',
  'additionalProperties',
  'anyOf',
  'const',
  'default',
  'description',
  'enum',
  'examples',
  'format',
  'items',
  'maxItems',
  'maxLength',
  'maximum',
  'minItems',
  'minLength',
  'minimum',
  'pattern',
  'patternProperties',
  'properties',
  'required',
  'type',
  'uniqueItems',
]);

/** The type of values that the schema accepts. Throws for a keyword that it does not know. */
export function typeOf(schema: JsonSchema, indent = ''): string {
  const unknown = Object.keys(schema).find((keyword) => !KNOWN.has(keyword));
  if (unknown !== undefined) throw new Error(`no type for the keyword ${unknown}`);
  const name = referred(schema);
  if (name !== undefined) return name;
  if (schema.const !== undefined) return JSON.stringify(schema.const).replaceAll('"', "'");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value).replaceAll('"', "'")).join(' | ');
  if (schema.anyOf) return [...new Set(schema.anyOf.map((member) => typeOf(member, indent)))].join(' | ');
  switch (schema.type) {
    case 'object':
      return objectType(schema, indent);
    case 'array': {
      const items = typeOf(schema.items ?? {}, indent);
      return /^\w+$/.test(items) ? `${items}[]` : `Array<${items}>`;
    }
    case 'integer':
    case 'number':
      return 'number';
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type;
    default:
      return 'unknown';
  }
}

function objectType({ properties = {}, required = [], patternProperties }: JsonSchema, indent: string): string {
  if (patternProperties !== undefined) {
    const [values] = Object.values(patternProperties as Record<string, JsonSchema>);
    return `Record<string, ${typeOf(values ?? {}, indent)}>`;
  }
  const names = Object.keys(properties);
  if (names.length === 0) return 'Record<string, never>';
  const inner = `${indent}  `;
  const lines = Object.entries(properties).map(([name, property]) => {
    const type = typeOf(property, inner);
    const member = required.includes(name) ? `${name}: ${type};` : `${name}?: ${type} | undefined;`;
    return `${comment(aboutSchema(property), inner)}${inner}${member}\n`;
  });
  return `{\n${lines.join('')}${indent}}`;
}

/** What a schema says beside its type: its description, bounds and default. */
export function aboutSchema(schema: JsonSchema): string {
  return [schema.description, limitsOf(schema)].filter((part) => part).join(' ');
}

/** Bounds and default of a value, in words. */
export function limitsOf(schema: JsonSchema): string {
  const range = (least: unknown, most: unknown, of: string) => {
    if (least === undefined && most === undefined) return '';
    if (least === undefined) return `up to ${most}${of}`;
    if (most === undefined) return Number(least) === 0 && of === '' ? '' : `${least}${of} or more`;
    return least === most ? `${least}${of}` : `${least} to ${most}${of}`;
  };
  const { minimum, maximum, minLength, maxLength, minItems, maxItems } = schema;
  const parts = [
    range(minimum, maximum, ''),
    range(minLength, maxLength, ' characters'),
    range(minItems, maxItems, ' entries'),
    schema.default === undefined ? '' : `default ${JSON.stringify(schema.default)}`,
  ].filter((part) => part !== '');
  return parts.length === 0 ? '' : `${parts.join('; ').replace(/^./, (first) => first.toUpperCase())}.`;
}

/** A comment above a member, or nothing. */
export function comment(text: string, indent: string): string {
  return text === '' ? '' : `${indent}/** ${text.replaceAll('*/', '*\\/')} */\n`;
}
