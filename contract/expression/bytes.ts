const encoder = new TextEncoder();

/** Bytes of a string in UTF-8. */
export function utf8(text: string): Uint8Array {
  return encoder.encode(text);
}

/** Whether a string has at most so many bytes in UTF-8; one of UTF-16 is three at most. */
export function fitsBytes(text: string, max: number): boolean {
  return text.length * 3 <= max || (text.length <= max && utf8(text).length <= max);
}

/** Index of the code point with which a string gets more than `max` bytes; -1 when it does not. */
export function indexBeyondBytes(text: string, max: number): number {
  let bytes = 0;
  let index = 0;
  for (const character of text) {
    bytes += bytesOf(character.codePointAt(0)!);
    if (bytes > max) return index;
    index += character.length;
  }
  return -1;
}

function bytesOf(codePoint: number): number {
  if (codePoint < 0x80) return 1;
  if (codePoint < 0x800) return 2;
  return codePoint < 0x10000 ? 3 : 4;
}

/** Whether a character is a control character of ASCII. */
export function isControl(character: string): boolean {
  return character < ' ' || character === '\u007f';
}
