// Text is readable on its ground in both themes: WCAG AA, 4.5:1; lines of controls 3:1.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { consoleRoot } from '../../../../../helpers/console-sources.ts';

const css = readFileSync(join(consoleRoot, 'src/shared/styles/tokens.css'), 'utf8');

function tokens(selector: string): Map<string, string> {
  const block = css.slice(css.indexOf(`${selector} {`)).split('}', 1)[0]!;
  return new Map([...block.matchAll(/--svc-([a-z0-9-]+): (#[0-9a-f]{6});/g)].map((match) => [match[1]!, match[2]!]));
}

function luminance(hex: string): number {
  const channels = [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255);
  const [r, g, b] = channels.map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

function contrast(a: string, b: string): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (light! + 0.05) / (dark! + 0.05);
}

const GROUNDS = ['ground', 'surface', 'raised', 'hover'];
const STATES = ['green', 'amber', 'red', 'blue', 'grey'];
const PAIRS: readonly (readonly [text: string, ground: string, least: number])[] = [
  ...GROUNDS.flatMap((ground) => ['text', 'text-soft', 'accent', 'red'].map((text) => [text, ground, 4.5] as const)),
  ...STATES.map((state) => [state, `${state}-soft`, 4.5] as const),
  ['accent-text', 'accent', 4.5],
  ['accent-text', 'accent-hover', 4.5],
  ['accent', 'accent-soft', 4.5],
  ['text', 'accent-soft', 4.5],
  ['text-soft', 'accent-soft', 4.5],
  ['surface', 'red', 4.5],
  ['text-soft', 'grey-soft', 4.5],
  ['line-strong', 'surface', 3],
  ['line-strong', 'ground', 3],
];

for (const [theme, selector] of [
  ['light', ':root'],
  ['dark', 'html.dark'],
] as const) {
  test(`texts of the ${theme} theme stand out`, (t) => {
    const colours = tokens(selector);
    for (const [text, ground, least] of PAIRS) {
      const found = contrast(colours.get(text)!, colours.get(ground)!);
      t.true(found >= least, `${text} on ${ground}: ${found.toFixed(2)}:1`);
    }
  });
}
