// What visitors would see of a template, with made-up values.
import type { PAGE_VALUES, PageStatus } from '@contract/resources/error-pages.ts';

type Value = (typeof PAGE_VALUES)[number];
export type ShownStatus = PageStatus | number;

const VALUES: Record<Exclude<Value, 'status'>, string> = {
  request_id: '4f1c9a62d0e84b7f',
  client_ip: '203.0.113.7',
  host: 'www.example.com',
  time: '2026-01-31T12:00:00Z',
  path: '/cart',
};

/** A status as visitors may see it: one of its class for 4xx and 5xx. */
export function statusShown(status: ShownStatus): number {
  if (typeof status === 'number') return status;
  return status === '4xx' ? 406 : 501;
}

/** A template with its placeholders replaced: "404" for {{status}}. */
export function filledIn(template: string, status: ShownStatus): string {
  return template.replace(/\{\{(\w+)\}\}/g, (whole, name: string) =>
    name === 'status' ? String(statusShown(status)) : (VALUES[name as keyof typeof VALUES] ?? whole),
  );
}

/** Bytes of a template in UTF-8. */
export const bytesOf = (template: string): number => new TextEncoder().encode(template).length;
