// Domains of sites, in four forms:
//   a.com     that name            *.a.com   exactly one more label
//   .a.com    one or more labels, not the apex
//   ~regex    the whole lower-case host (see domain-pattern.ts)
import { isDomainPattern } from './domain-pattern.ts';
import { MAX_HOST_NAME_LENGTH, normaliseHostName } from './host-name.ts';

export type DomainForm = 'exact' | 'wildcard' | 'suffix' | 'pattern';

export interface Domain {
  readonly form: DomainForm;
  /** Without the form's marker. */
  readonly name: string;
}

/** Longest text taken: people paste addresses with paths. */
export const MAX_DOMAIN_TEXT = 1024;

const MARKERS: Record<DomainForm, string> = { exact: '', wildcard: '*.', suffix: '.', pattern: '~' };

/** The domain meant by a text, which may be pasted with scheme, port, path or trailing dot. Null when it is none. */
export function parseDomain(text: string): Domain | null {
  if (text.length > MAX_DOMAIN_TEXT) return null;
  const trimmed = text.trim();
  if (trimmed.startsWith('~')) {
    const name = trimmed.slice(1);
    return isDomainPattern(name) ? { form: 'pattern', name } : null;
  }
  const host = stripAddress(trimmed);
  const form = host.startsWith('*.') ? 'wildcard' : host.startsWith('.') ? 'suffix' : 'exact';
  const name = normaliseHostName(host.slice(MARKERS[form].length));
  if (name === null || MARKERS[form].length + name.length > MAX_HOST_NAME_LENGTH) return null;
  if (form === 'exact' && !name.includes('.') && name !== 'localhost') return null;
  return { form, name };
}

/** Canonical text: the marker of the form, then the name. */
export function formatDomain({ form, name }: Domain): string {
  return MARKERS[form] + name;
}

function stripAddress(text: string): string {
  const afterScheme = text.replace(/^https?:\/\//i, '');
  const host = afterScheme.split(/[/?#]/, 1)[0] as string;
  return host.replace(/:[0-9]{1,5}$/, '');
}
