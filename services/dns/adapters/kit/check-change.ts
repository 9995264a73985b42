// Changes that no server can take are refused here, before they spoil a batch.
import { isIPv4, isIPv6 } from 'node:net';
import { AdapterError, type Change } from '../adapter.ts';

const MAX_NAME_LENGTH = 253;
const MAX_VALUES = 400;
const MAX_TXT_BYTES = 4_000;

/** Null: nothing is wrong with it as far as anybody can see here. */
export function wrongChange(change: Change): AdapterError | null {
  const { name, action, type } = change;
  if (name.length > MAX_NAME_LENGTH || name.split('.').some((label) => label.length === 0 || label.length > 63)) {
    return new AdapterError('invalid', `${name} is no name of a record`);
  }
  if (action === 'delete') return null;
  if (change.values.length === 0 || change.values.length > MAX_VALUES) {
    return new AdapterError('invalid', `${change.values.length} values`);
  }
  const bad = change.values.find((value) => !isValue(type, value));
  if (bad !== undefined) return new AdapterError('invalid', `${bad} is no value of a record of type ${type}`);
  if (type === 'CNAME' && change.values.length > 1) return new AdapterError('invalid', 'more than one CNAME value');
  return null;
}

function isValue(type: string, value: string): boolean {
  if (type === 'A') return isIPv4(value);
  if (type === 'AAAA') return isIPv6(value);
  return value !== '' && Buffer.byteLength(value) <= MAX_TXT_BYTES;
}
