// Templates of pages: the capabilities that they need, and how settings with them are shown.
import { createHash } from 'node:crypto';

const LATER_VALUES = /\{\{(?:time|path)\}\}/;
const SHOWN = 200;

/** Capabilities that pages with these templates need, sorted. */
export function capabilitiesOfTemplates(templates: readonly string[]): string[] {
  return ['error-pages-v1', ...(templates.some((template) => LATER_VALUES.test(template)) ? ['rules-v3'] : [])];
}

/** A template as differences show it: a long one by its beginning, size and digest. */
export function shownTemplate(template: string): string {
  if (template.length <= SHOWN) return template;
  const digest = createHash('sha256').update(template).digest('hex').slice(0, 12);
  return `${template.slice(0, SHOWN)}… (${Buffer.byteLength(template)} bytes, SHA-256 ${digest})`;
}
