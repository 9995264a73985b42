// Names of records, as servers of names have them.
import { normaliseHostName } from '../../../contract/scalars/host-name.ts';

/** In lower case, without a dot at the end; underscores are welcome. Null for a text that is no such name. */
export function recordName(text: string): string | null {
  return normaliseHostName(text.trim());
}

/** Whether the name is the zone or below it. */
export function isInside(name: string, zone: string): boolean {
  return name === zone || name.endsWith(`.${zone}`);
}

/** Where an authority looks for what shows whose a name is. */
export function challengeName(name: string): string {
  return `_acme-challenge.${name}`;
}
