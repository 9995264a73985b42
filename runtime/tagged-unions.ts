// Unions whose members are told apart by a constant field, in the form in which a validator looks at that field first: what
// is wrong is then told of the member that is meant, not of each, and its defaults are filled in.
import type { JsonSchema } from '../contract/examples.ts';

/** A copy of the schema with every such union in it as one that has a discriminator. */
export function withTags(schema: object): JsonSchema {
  return tagged(JSON.parse(JSON.stringify(schema)) as JsonSchema);
}

function tagged(schema: JsonSchema): JsonSchema {
  const { properties, items, anyOf } = schema;
  const inside = {
    ...schema,
    ...(properties && { properties: mapped(properties) }),
    ...(items && { items: tagged(items) }),
    ...(anyOf && { anyOf: anyOf.map(tagged) }),
  };
  const tag = inside.anyOf && tagOf(inside.anyOf);
  if (tag === undefined) return inside;
  const { anyOf: oneOf, ...rest } = inside;
  return { ...rest, type: 'object', required: [tag], discriminator: { propertyName: tag }, oneOf };
}

function mapped(properties: Readonly<Record<string, JsonSchema>>): Record<string, JsonSchema> {
  return Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, tagged(property)]));
}

/** The field that all of them must have and that is another constant in each. */
function tagOf(members: readonly JsonSchema[]): string | undefined {
  const [first] = members;
  return Object.keys(first?.properties ?? {}).find((name) => {
    const values = members.map(({ properties, required }) =>
      required?.includes(name) ? properties?.[name]?.const : undefined,
    );
    return values.every((value) => typeof value === 'string') && new Set(values).size === values.length;
  });
}
