// Idempotency-Key: 1 to 255 printable ASCII characters, bare or as a string of RFC 8941 §3.3.3:
// sf-string = DQUOTE *chr DQUOTE; chr = unescaped / escaped; unescaped = %x20-21 / %x23-5B / %x5D-7E;
// escaped = "\" ( DQUOTE / "\" ).
import test from 'ava';
import fc from 'fast-check';
import { errorCodeOf } from '../../../../contract/errors.ts';
import { parseIdempotencyKey } from '../../../../services/api-gateway/idempotency-key.ts';

for (const [header, key] of [
  ['a', 'a'],
  ['8e03978e-40d5-43dd-bc93-6894a57f9324', '8e03978e-40d5-43dd-bc93-6894a57f9324'],
  ['"a"', 'a'],
  ['"a \\"quoted\\" \\\\ key"', 'a "quoted" \\ key'],
  ['" "', ' '],
  ['"\\""', '"'],
  ['"\\\\"', '\\'],
  ['"\\\\\\""', '\\"'],
  ['with spaces, and = signs', 'with spaces, and = signs'],
  ['a"b', 'a"b'],
  ['a\\b', 'a\\b'],
  ['token;a=1', 'token;a=1'],
  ['?1', '?1'],
  [':YQ==:', ':YQ==:'],
  ['  padded  ', 'padded'],
  ['\t"padded"\t', 'padded'],
  ['x'.repeat(255), 'x'.repeat(255)],
  [`"${'x'.repeat(255)}"`, 'x'.repeat(255)],
  [`"${'\\\\'.repeat(255)}"`, '\\'.repeat(255)],
] as const) {
  test(`accepts ${header.slice(0, 40)} (${header.length})`, (t) => {
    t.is(parseIdempotencyKey(header), key);
  });
}

for (const header of [
  '',
  '   ',
  '""',
  '"',
  '"\\"',
  '"open',
  '"a"b',
  '"a" b',
  '"a"";',
  '"a";p=1',
  '"a", "b"',
  '"a\\b"',
  '"a\\',
  '"tab\t"',
  '"nul\0"',
  'tab\tinside',
  'ünicode',
  '"ünicode"',
  '\u00a0a',
  'a\u00a0',
  'x'.repeat(256),
  `"${'x'.repeat(256)}"`,
  `"${'\\"'.repeat(256)}"`,
  'del\u007f',
  '"del\u007f"',
  // Looked at again from each blank, it would take longer than a test may.
  `a${' '.repeat(1024 * 1024)}b`,
]) {
  test(`refuses ${JSON.stringify(header.slice(0, 40))} (${header.length})`, (t) => {
    const error = t.throws(() => parseIdempotencyKey(header));
    t.is(errorCodeOf(error), 'IDEMPOTENCY_KEY_INVALID');
  });
}

const printable = fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code));
const keys = fc.array(printable, { minLength: 1, maxLength: 255 }).map((characters) => characters.join(''));
const quote = (key: string) => `"${key.replace(/["\\]/g, '\\$&')}"`;
const accepts = (header: string) => {
  try {
    return parseIdempotencyKey(header);
  } catch {
    return null;
  }
};

test('any key, quoted, is itself', (t) => {
  fc.assert(fc.property(keys, (key) => accepts(quote(key)) === key));
  t.pass();
});

test('any key that does not begin with a quote or end in a space is itself, bare', (t) => {
  fc.assert(
    fc.property(
      keys.filter((key) => !key.startsWith('"') && key.trim() === key),
      (key) => accepts(key) === key,
    ),
  );
  t.pass();
});

// The grammar once more, character by character, as RFC 8941 §4.2.5 parses it.
function reference(header: string): string | null {
  const text = header.replace(/^[ \t]+|[ \t]+$/g, '');
  const valid = (key: string) => (key.length >= 1 && key.length <= 255 ? key : null);
  const visible = (character: string) => character >= ' ' && character <= '~';
  if (text[0] !== '"') return [...text].every(visible) ? valid(text) : null;
  let key = '';
  for (let index = 1; index < text.length; index++) {
    const character = text[index]!;
    if (character === '\\') {
      const next = text[++index];
      if (next !== '"' && next !== '\\') return null;
      key += next;
    } else if (character === '"') {
      return index === text.length - 1 ? valid(key) : null;
    } else if (visible(character)) {
      key += character;
    } else {
      return null;
    }
  }
  return null;
}

test('any text at all is judged as the grammar says', (t) => {
  const pieces = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom('"', '\\', ' ', '\t', 'a', ';', ',', '~', '\x7f', '\x80', '\u00a0', '\0') },
    { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 3 }) },
    { weight: 1, arbitrary: fc.integer({ min: 250, max: 258 }).map((length) => 'x'.repeat(length)) },
  );
  const headers = fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join(''));
  fc.assert(
    fc.property(
      fc.oneof(
        headers,
        headers.map((text) => `"${text}"`),
      ),
      (header) => {
        return accepts(header) === reference(header);
      },
    ),
    { numRuns: 2_000 },
  );
  t.pass();
});
