// Bytes of a request as JSON can carry them.

import { formatAddress } from '../../../contract/scalars/cidr.ts';
import { MAX_SHOWN_BYTES, type ShownValue } from '../../../contract/scalars/rule-trace.ts';
import type { Bytes } from '../evaluate/bytes.ts';
import type { FieldValue } from '../evaluate/evaluate.ts';

const TEXT = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/;

/** A value of any type. */
export function shown(value: FieldValue): ShownValue {
  if (value === null) return shownBytes('');
  if (typeof value === 'object') return shownBytes(formatAddress(value));
  return shownBytes(String(value));
}

function shownBytes(value: Bytes): ShownValue {
  const bytes = Buffer.from(value.slice(0, MAX_SHOWN_BYTES), 'latin1');
  const text = textOf(bytes, value.length > MAX_SHOWN_BYTES);
  return { text, base64: text === null ? bytes.toString('base64') : null, bytes: value.length };
}

/** Null when it is no text. A character that was cut in two is left out. */
function textOf(bytes: Buffer, cut: boolean): string | null {
  for (let less = 0; less <= (cut ? 3 : 0); less++) {
    try {
      const text = TEXT.decode(bytes.subarray(0, bytes.length - less));
      return CONTROL.test(text) ? null : text;
    } catch {
      // Not UTF-8 as far as it goes.
    }
  }
  return null;
}
