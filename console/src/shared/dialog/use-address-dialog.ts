// A dialog that an address opens, as `?new=1`: a link leads to it, Back closes it. Opened here it has an entry of its own
// in the browser's history, and closing it goes back over that; opened by a link it takes itself out of the address.
import { type RouteLocationRaw, useRoute, useRouter } from 'vue-router';

export interface AddressDialog {
  readonly shown: boolean;
  /** Opens it; `query` are further parts of the address that it reads. */
  open(query?: Readonly<Record<string, string>>): void;
  /** Takes it, and what it reads, out of the address. */
  close(): void;
  /** Opens another page in its place: Back leads to the page below it. */
  leave(to: RouteLocationRaw): void;
  /** A part of the address that it reads; empty where there is none. */
  asked(name: string): string;
}

/** The dialog that `?<name>=1` opens; `reads` names further parts of the address that are gone with it. */
export function useAddressDialog(name: string, reads: readonly string[] = []): AddressDialog {
  const route = useRoute();
  const router = useRouter();
  const asked = (part: string) => {
    const value = route.query[part];
    return typeof value === 'string' ? value : '';
  };
  return {
    get shown() {
      return asked(name) === '1';
    },
    asked,
    open: (query = {}) =>
      void router.push({ query: { ...route.query, ...query, [name]: '1' }, state: { dialog: name } }),
    close() {
      // Back may have closed it already.
      if (asked(name) !== '1') return;
      if (window.history.state?.dialog === name) return router.back();
      const gone = [name, ...reads];
      const rest = Object.entries(route.query).filter(([part]) => !gone.includes(part));
      void router.replace({ query: Object.fromEntries(rest) });
    },
    leave: (to) => void router.replace(to),
  };
}
