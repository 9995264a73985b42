// Names and values as adapters return them, from the many ways in which providers write them.
import ipaddr from 'ipaddr.js';
import { recordName } from '../names.ts';

const MAX_CHUNK_BYTES = 255;

/** Canonical name of a record; a name that is no host name, such as `*.example.com`, stays itself in lower case. */
export function canonicalName(text: string): string {
  const plain = text.trim().replace(/[.]$/, '').replaceAll('\\052', '*').toLowerCase();
  const [, star = '', rest = ''] = /^([*][.])?(.*)$/s.exec(plain)!;
  const canonical = recordName(rest);
  return canonical === null ? plain : `${star}${canonical}`;
}

/** `@` or an empty text is the zone itself. */
export function absoluteName(relative: string, zone: string): string {
  const name = relative.trim();
  return name === '@' || name === '' ? zone : canonicalName(`${name.replace(/[.]$/, '')}.${zone}`);
}

/** `@` for the zone itself. */
export function relativeName(name: string, zone: string): string {
  return name === zone ? '@' : name.slice(0, -zone.length - 1);
}

/** Canonical value of A, AAAA, CNAME and TXT; others stay as they are. TXT in quotes is taken for presentation format. */
export function canonicalValue(type: string, text: string): string {
  if (type === 'A' || type === 'AAAA') return ipaddr.isValid(text) ? ipaddr.parse(text).toString() : text;
  if (type === 'CNAME') return canonicalName(text);
  if (type === 'TXT') return unquoteTxt(text);
  return text;
}

/** Character strings in quotes, of at most 255 bytes each. */
export function quoteTxt(text: string): string {
  const bytes = Buffer.from(text);
  const chunks: string[] = [];
  for (let at = 0; at === 0 || at < bytes.length; at += MAX_CHUNK_BYTES) {
    let chunk = '';
    for (const byte of bytes.subarray(at, at + MAX_CHUNK_BYTES)) {
      if (byte === 0x22 || byte === 0x5c) chunk += `\\${String.fromCharCode(byte)}`;
      else if (byte < 0x20 || byte > 0x7e) chunk += `\\${String(byte).padStart(3, '0')}`;
      else chunk += String.fromCharCode(byte);
    }
    chunks.push(`"${chunk}"`);
  }
  return chunks.join(' ');
}

/** The text of character strings in quotes; a text without quotes is itself. */
export function unquoteTxt(text: string): string {
  if (!text.startsWith('"')) return text;
  const bytes: number[] = [];
  let inside = false;
  const raw = Buffer.from(text);
  for (let at = 0; at < raw.length; at++) {
    const byte = raw[at]!;
    if (byte === 0x22) inside = !inside;
    else if (!inside) continue;
    else if (byte !== 0x5c) bytes.push(byte);
    else {
      const digits = /^[0-9]{3}/.exec(raw.toString('latin1', at + 1, at + 4));
      bytes.push(digits ? Number(digits[0]) & 0xff : (raw[at + 1] ?? 0));
      at += digits ? 3 : 1;
    }
  }
  return Buffer.from(bytes).toString();
}
