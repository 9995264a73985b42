// Literals that make a comparison with a value true: what random ones hardly ever do.
import { type Cidr, formatAddress } from '../../contract/scalars/cidr.ts';
import type { Random } from './random.ts';

/** The text whose UTF-8 the bytes are; null when they are none. */
export function textOf(bytes: string): string | null {
  const text = Buffer.from(bytes, 'latin1').toString('utf8');
  return Buffer.from(text, 'utf8').toString('latin1') === bytes ? text : null;
}

/** A part of a text, cut between characters. */
export function partOf(random: Random, text: string): string {
  const characters = [...text];
  const start = random.below(characters.length + 1);
  return characters.slice(start, start + 1 + random.below(4)).join('');
}

/** A pattern of the subset that finds something in the bytes. */
export function patternFor(random: Random, bytes: string): string {
  const start = random.below(bytes.length + 1);
  const length = random.below(5);
  const part = [...bytes.slice(start, start + length)].map((byte) => patternOfByte(random, byte));
  if (random.chance(0.2)) return `${part.join('')}|q{2}`;
  if (random.chance(0.2)) return `(${part.join(')(')})`;
  const before = start === 0 && random.chance(0.5) ? '^' : '';
  const after = start + length >= bytes.length && random.chance(0.5) ? '$' : '';
  return before + part.join('') + after;
}

function patternOfByte(random: Random, byte: string): string {
  const code = byte.charCodeAt(0);
  const repeat = random.of(['', '', '', '+?', '{1,2}', '*']);
  if (byte === '\n') return `\\n${repeat}`;
  if (/[A-Za-z0-9]/.test(byte)) return random.of([byte, '\\w', '.', `[${byte}x-]`, '[^/]']) + repeat;
  if (code > 0x20 && code < 0x7f)
    return random.of([`\\${byte}`, '\\W', '.', `[\\${byte}a-c]`].slice(byte === '_' ? 2 : 0)) + repeat;
  return random.of(['.', '[^a-z]', '\\D', '\\W']) + repeat;
}

/** A pattern with stars that is the bytes; case of ASCII letters changes where `fold` says that it does not count. */
export function globFor(random: Random, bytes: string, fold: boolean): string {
  const text = textOf(bytes);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: patterns have none of them
  if (text === null || /[\u0000-\u001f\u007f]/.test(text)) return '*';
  let stars = 0;
  const parts: string[] = [];
  for (const character of text) {
    if (stars < 6 && random.chance(0.25)) {
      // In place of the character, or before it.
      parts.push('*');
      stars++;
      if (random.chance(0.5)) continue;
    }
    if (character === '*' || character === '\\') parts.push(`\\${character}`);
    else parts.push(fold && /[a-zA-Z]/.test(character) && random.chance(0.5) ? flipped(character) : character);
  }
  return parts.join('');
}

function flipped(letter: string): string {
  return letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase();
}

/** A range that contains the address. */
export function rangeFor(random: Random, address: Cidr): string {
  const width = address.family === 4 ? 32 : 128;
  return `${formatAddress(address)}/${width - random.below(Math.min(width, 33))}`;
}
