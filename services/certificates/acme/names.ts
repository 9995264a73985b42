// Names of certificates: which a certificate with some of them covers, and which are of use.
import type { Domain } from '../../../contract/scalars/domain.ts';

/** Whether a certificate with the names is good for a host: the name itself, or one label below a wildcard. */
export function covers(names: readonly string[], host: string): boolean {
  return names.includes(host) || names.includes(`*.${host.slice(host.indexOf('.') + 1)}`);
}

/** Domains that the names do not cover, as texts; patterns have no names and are left out. */
export function uncovered(names: readonly string[], domains: readonly Domain[]): string[] {
  return domains.flatMap(({ form, name }) => {
    if (form === 'pattern') return [];
    if (form === 'exact') return covers(names, name) ? [] : [name];
    // A suffix is more than any certificate covers; its first level is what can be had.
    return names.includes(`*.${name}`) ? [] : [form === 'wildcard' ? `*.${name}` : `.${name}`];
  });
}

/** Names that one of the domains needs. */
export function usedNames(names: readonly string[], domains: readonly Domain[]): string[] {
  return names.filter((name) =>
    domains.some((domain) => {
      if (domain.form === 'pattern') return false;
      if (domain.form === 'exact') return covers([name], domain.name);
      return name === `*.${domain.name}`;
    }),
  );
}

/**
 * The registered domain of a name, by rule of thumb: the last two labels, three where the last is of a country and the
 * one before it a short word such as co or com. It decides only whose orders wait when an authority is asked too often.
 */
export function registeredDomain(name: string): string {
  const labels = name.replace(/^[*][.]/, '').split('.');
  const [second = '', top = ''] = labels.slice(-2);
  return labels.slice(top.length === 2 && second.length <= 3 ? -3 : -2).join('.');
}
