// By which of a site's domains it has a host.
import { type Domain, formatDomain } from './domain.ts';

/** The domain by which a site has a host: exact, wildcard, the longest suffix, then the first pattern. */
export function domainOf(host: string, domains: readonly Domain[]): string | null {
  const parent = host.replace(/^[^.]*\.?/, '');
  const named = (form: Domain['form'], holds: (name: string) => boolean) =>
    domains
      .filter((domain) => domain.form === form && holds(domain.name))
      .reduce<Domain | null>((longest, one) => (one.name.length > (longest?.name.length ?? 0) ? one : longest), null);
  const found =
    named('exact', (name) => name === host) ??
    named('wildcard', (name) => name === parent) ??
    named('suffix', (name) => host.endsWith(`.${name}`)) ??
    domains.find(({ form, name }) => form === 'pattern' && new RegExp(`^(?:${name})$`).test(host)) ??
    null;
  return found && formatDomain(found);
}
