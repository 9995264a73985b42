import { type EntryReader, entryReaderPart } from '../lib/part.ts';
import { AllowList } from './allow-list.ts';

const RESOLVE_MS = 5 * 60_000;

/** Addresses that kernel bans never drop, the console's among them. */
interface AllowListPart extends EntryReader {
  readonly entries: AllowList;
  /** Resolves the names of the console; never rejects. */
  resolve(): Promise<void>;
}

export const allowListPart = entryReaderPart<AllowListPart>({
  name: 'allow list',
  make: (node) => {
    const { log, options } = node;
    const ownName = new URL(options.identity.serverUrl).hostname.replace(/^\[|\]$/g, '');
    const entries = new AllowList(log, options.proxyPeers, () => node.tell({ case: 'exemptChanged' }));
    let names = [ownName];
    const resolve = (): Promise<void> => entries.resolve(names);
    return {
      entries,
      resolve,
      start: () => node.every(RESOLVE_MS, 'address resolution', resolve),
      event: (event) => {
        if (event.case !== 'heartbeat') return;
        const told = [ownName, ...event.value.consoleAddresses];
        if (JSON.stringify(told) === JSON.stringify(names)) return;
        names = told;
        void resolve();
      },
    };
  },
});
