import test from 'ava';
import { splitPart } from '../../../../../../console/src/features/sites/search-part.ts';

const PARTS = [
  { part: 'waf', titles: ['WAF'] },
  { part: 'waf-events', titles: ['WAF events', 'WAF 事件'] },
  { part: 'rules', titles: ['Rules', '规则'] },
];

for (const [typed, expected] of [
  ['waf', { part: 'waf', rest: '' }],
  [' WAF ', { part: 'waf', rest: '' }],
  ['waf shop', { part: 'waf', rest: 'shop' }],
  ['shop.example.com waf', { part: 'waf', rest: 'shop.example.com' }],
  ['waf events shop', { part: 'waf-events', rest: 'shop' }],
  ['规则 shop', { part: 'rules', rest: 'shop' }],
  ['wafer', null],
  ['shop', null],
] as const)
  test(`"${typed}" names ${expected ? `the part ${expected.part} of "${expected.rest}"` : 'no part of a site'}`, (t) => {
    t.deepEqual(splitPart(typed, PARTS), expected);
  });
