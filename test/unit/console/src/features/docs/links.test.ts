import test from 'ava';
import { linkTarget } from '../../../../../../console/src/features/docs/links.ts';

const page = (to: string) => ({ kind: 'page', to });
const web = (href: string) => ({ kind: 'web', href });
const file = (path: string) => ({ kind: 'file', path });

for (const [from, href, expected] of [
  ['README', 'bans.md', page('/docs/bans')],
  ['README', 'reference/errors.md', page('/docs/reference/errors')],
  ['bans', 'https.md#ports', page('/docs/https#ports')],
  ['bans', '#settings', page('/docs/bans#settings')],
  ['bans', 'README.md', page('/docs')],
  ['reference/metrics', '../monitoring.md', page('/docs/monitoring')],
  ['reference/README', 'errors.md', page('/docs/reference/errors')],
  ['reference/README', 'api/objects.md', web('/api/v1/openapi.json')],
  ['README', 'reference/api/README.md', web('/api/v1/openapi.json')],
  ['README', 'api/openapi.json', web('/api/v1/openapi.json')],
  ['waf', 'https://coraza.io', web('https://coraza.io')],
  ['README', '../README.md#the-first-protected-site', file('README.md')],
  ['compression', '../agents/caddy/README.md', file('agents/caddy/README.md')],
  ['README', 'development/benchmarks.md', file('docs/development/benchmarks.md')],
] as const)
  test(`the link ${href} of docs/${from}.md leads to a ${expected.kind}`, (t) => {
    t.deepEqual(linkTarget(from, href), expected as ReturnType<typeof linkTarget>);
  });
