import type { ServiceSchema } from 'moleculer';
import { clusterDns } from '../../contract/resources/cluster-dns.ts';
import { dns, dnsProtection, dnsProviders } from '../../contract/resources/dns.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { dnsCatalog } from './catalog.ts';
import { createProvider, deleteProvider, listProviders, updateProvider } from './providers.ts';
import { exportClusterDns, getClusterDns, listDnsRevisions } from './read-binding.ts';
import { reconcileDns } from './reconcile.ts';
import { getDnsProtection, listDnsBindings, setDnsProtection } from './settings.ts';
import { readSiteTarget } from './site-target.ts';
import { listZones, testAccess } from './trial.ts';
import { forceClusterDns, previewClusterDns, rollbackClusterDns, setClusterDns } from './write-binding.ts';

export const roles: Role[] = ['app'];
export const belongings = ['scheduler'];

export default (runtime: Runtime): ServiceSchema => ({
  name: 'dns',
  mixins: [
    contractService([
      implement(dns.catalog, async () => dnsCatalog()),
      implement(dns.bindings, (input) => listDnsBindings(runtime, input)),
      implement(dns.zones, (input) => listZones(runtime, input)),
      implement(dns.test, (input) => testAccess(runtime, input)),
      implement(dns.reconcile, (input, call) => reconcileDns(runtime, input, call)),
      implement(dns.siteTarget, (input) => readSiteTarget(runtime, input)),
      implement(dnsProviders.list, (input) => listProviders(runtime, input)),
      implement(dnsProviders.create, (input, call) => createProvider(runtime, input, call)),
      implement(dnsProviders.update, (input, call) => updateProvider(runtime, input, call)),
      implement(dnsProviders.delete, (input, call) => deleteProvider(runtime, input, call)),
      implement(dnsProtection.get, () => getDnsProtection(runtime)),
      implement(dnsProtection.set, (input, call) => setDnsProtection(runtime, input, call)),
      implement(clusterDns.get, (input) => getClusterDns(runtime, input)),
      implement(clusterDns.set, (input, call) => setClusterDns(runtime, input, call)),
      implement(clusterDns.preview, (input, call) => previewClusterDns(runtime, input, call)),
      implement(clusterDns.export, (input) => exportClusterDns(runtime, input)),
      implement(clusterDns.revisions, (input) => listDnsRevisions(runtime, input)),
      implement(clusterDns.rollback, (input, call) => rollbackClusterDns(runtime, input, call)),
      implement(clusterDns.force, (input, call) => forceClusterDns(runtime, input, call)),
    ]),
  ],
});
