// Dictionaries of structured fields (RFC 9651, section 3.2), as far as cache directives need them.
import type { Bytes } from '../evaluate/bytes.ts';

export interface Item {
  readonly kind: 'true' | 'false' | 'integer' | 'string' | 'other';
  readonly text: Bytes;
  /** The member as it stands. */
  readonly written: Bytes;
}

const KEY = /^[a-z*][a-z0-9_\-.*]*/;
const SPACES = /^ */;
const BLANKS = /^[ \t]*/;

/** Its members; null where the field is not valid. */
export function dictionary(field: Bytes): Map<string, Item> | null {
  const reader = new Reader(field.replace(/^ +| +$/g, ''));
  const members = new Map<string, Item>();
  while (reader.rest !== '') {
    const before = reader.rest;
    const name = reader.match(KEY);
    if (name === null) return null;
    const value = reader.take('=') ? reader.value() : ({ kind: 'true', text: '' } as const);
    if (!value || !reader.parameters()) return null;
    members.set(name, { ...value, written: before.slice(0, before.length - reader.rest.length) });
    reader.match(BLANKS);
    if (reader.rest === '') break;
    if (!reader.take(',')) return null;
    reader.match(BLANKS);
    if (reader.rest === '') return null;
  }
  return members;
}

type Value = Pick<Item, 'kind' | 'text'>;
const OTHER: Value = { kind: 'other', text: '' };

class Reader {
  rest: Bytes;

  constructor(text: Bytes) {
    this.rest = text;
  }

  take(character: string): boolean {
    if (!this.rest.startsWith(character)) return false;
    this.rest = this.rest.slice(character.length);
    return true;
  }

  match(pattern: RegExp): Bytes | null {
    const [found] = pattern.exec(this.rest) ?? [];
    if (found === undefined) return null;
    this.rest = this.rest.slice(found.length);
    return found;
  }

  parameters(): boolean {
    while (this.take(';')) {
      this.match(SPACES);
      if (this.match(KEY) === null) return false;
      if (this.take('=') && !this.bare()) return false;
    }
    return true;
  }

  /** An item or an inner list. */
  value(): Value | null {
    if (!this.take('(')) return this.bare();
    for (;;) {
      this.match(SPACES);
      if (this.take(')')) return OTHER;
      if (!this.bare() || !this.parameters() || !/^[ )]/.test(this.rest)) return null;
    }
  }

  bare(): Value | null {
    if (this.take('?1')) return { kind: 'true', text: '' };
    if (this.take('?0')) return { kind: 'false', text: '' };
    if (/^[-0-9]/.test(this.rest)) return this.number();
    if (this.rest.startsWith('"')) {
      const found = this.match(/^"(?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"/);
      return found === null ? null : { kind: 'string', text: found.slice(1, -1).replace(/\\(.)/g, '$1') };
    }
    if (this.take('@')) {
      const date = this.number();
      return date?.kind === 'integer' ? OTHER : null;
    }
    const other = this.match(/^:[A-Za-z0-9+/=]*:/) ?? this.match(/^[A-Za-z*][A-Za-z0-9!#$%&'*+\-.^_`|~:/]*/);
    return other === null ? null : OTHER;
  }

  /** An integer of at most 15 digits, or a decimal of at most 12 and 3. One below 0 is no time. */
  number(): Value | null {
    const [found, sign, digits = '', point, part = ''] = /^(-?)([0-9]*)(\.?)([0-9]*)/.exec(this.rest) ?? [''];
    if (digits === '' || digits.length > 15) return null;
    if (point === '.') {
      if (digits.length > 12 || part === '' || part.length > 3) return null;
      this.take(found);
      return OTHER;
    }
    this.take(`${sign}${digits}`);
    return sign === '-' ? OTHER : { kind: 'integer', text: digits };
  }
}
