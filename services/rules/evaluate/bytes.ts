// Bytes of requests are held as strings with a character per byte: what a client sends need not be UTF-8.
declare const bytes: unique symbol;

/** A string of characters from 0 to 255, each a byte. */
export type Bytes = string & { readonly [bytes]?: never };

/** The bytes of a text in UTF-8. */
export function bytesOf(text: string): Bytes {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** With A to Z made small, and nothing else. */
export function lowerAscii(value: Bytes): Bytes {
  return value.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/** With a to z made large, and nothing else. */
export function upperAscii(value: Bytes): Bytes {
  return value.replace(/[a-z]+/g, (letters) => letters.toUpperCase());
}
