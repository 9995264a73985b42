import { FIELDS } from '../../contract/expression/fields.ts';
import { contains, parseAddress, parseCidr } from '../../contract/scalars/cidr.ts';
import type { FieldValue, Surroundings } from '../../services/rules/evaluate/evaluate.ts';

const MISSING: Readonly<Record<string, FieldValue>> = { string: '', number: 0, boolean: false, ip: null };

/** Surroundings in which fields have these values, addresses as texts; a name stands in brackets, without quotes. */
export function givenFields(
  fields: Readonly<Record<string, string | number | boolean>>,
  lists: Readonly<Record<string, readonly string[]>>,
): Surroundings {
  return {
    field(field, name) {
      const value = fields[name === null ? field : `${field}[${name}]`];
      const { type } = FIELDS.get(field)!;
      if (value === undefined) return MISSING[type]!;
      return type === 'ip' ? parseAddress(String(value)) : value;
    },
    inList: (list, address) => (lists[list] ?? []).some((cidr) => contains(parseCidr(cidr)!, address)),
  };
}
