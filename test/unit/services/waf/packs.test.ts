// What packs of exclusions would have silenced, and what all of them ask of nodes.
import test from 'ava';
import { MAX_WAF_CONTENT_TYPES, MAX_WAF_EXCLUSIONS } from '../../../../contract/resources/site-waf.ts';
import { WAF_PACK_IDS } from '../../../../contract/waf-pack-ids.ts';
import { exclusionsOfPack, packsOf, WAF_PACKS } from '../../../../contract/waf-packs.ts';
import {
  MAX_WAF_TARGETS,
  WAF_CONTENT_TYPES,
  WAF_OWN_FAMILIES,
  WAF_PARTS,
  WAF_TAGS,
} from '../../../../contract/waf-rule-set.ts';
import RULES from '../../../../contract/waf-rules.json' with { type: 'json' };
import type { NewestMatches } from '../../../../models/waf/waf-event.ts';
import { givenExclusion } from '../../../../services/waf/given-waf.ts';
import { countPack } from '../../../../services/waf/packs.ts';

const event = (path: string, rule: number, part = 'argument', name = 'content'): NewestMatches => ({
  path,
  rules: [rule],
  matches: [{ rule, part, name, points: 5 }],
  matchesSeen: 1,
  score: 5,
  threshold: 5,
});
const silenced = (id: (typeof WAF_PACK_IDS)[number], ...events: NewestMatches[]) =>
  countPack(packsOf([id])[0]!, events)!.events;

test('packs have the IDs that settings take, and each exclusion is one that a client could send', (t) => {
  t.deepEqual(
    WAF_PACKS.map(({ id }) => id),
    [...WAF_PACK_IDS],
  );
  for (const pack of WAF_PACKS) {
    t.true(pack.version >= 1);
    const exclusions = exclusionsOfPack(pack);
    t.is(new Set(exclusions.map((one) => JSON.stringify(one))).size, exclusions.length, pack.id);
    for (const exclusion of exclusions) {
      t.deepEqual(givenExclusion(exclusion, '/exclusions/0'), exclusion);
      const { ruleId, tag } = exclusion;
      if (tag !== null) t.true(Object.hasOwn(WAF_TAGS, tag), tag);
      else t.true(RULES.some(({ id }) => id === ruleId) && !WAF_OWN_FAMILIES.includes(Math.floor(ruleId! / 1000)));
    }
    for (const { reason } of pack.exclusions) for (const text of Object.values(reason)) t.regex(text, /[.。]$/);
  }
});

test('all packs together are within the limits of nodes', (t) => {
  const all = WAF_PACKS.flatMap(exclusionsOfPack);
  t.true(all.length <= MAX_WAF_EXCLUSIONS / 2, String(all.length));
  const targets = all.reduce((sum, { tag, part }) => sum + (tag === null ? 1 : WAF_TAGS[tag]!) * WAF_PARTS[part], 0);
  t.true(targets <= (MAX_WAF_TARGETS * 3) / 4, String(targets));
  const types = WAF_PACKS.flatMap(({ contentTypes }) => contentTypes);
  t.true(types.length + WAF_CONTENT_TYPES.length <= MAX_WAF_CONTENT_TYPES);
});

test('an event counts for a pack by its path and parameter', (t) => {
  const editor = event('/wp-json/wp/v2/posts/7', 941_110, 'argument', 'json.content');
  t.is(silenced('wordpress', editor, event('/wp-admin/post.php', 942_100)), 2);
  t.is(silenced('wordpress', { ...editor, path: '/elsewhere' }), 0);
  t.is(silenced('wordpress', event('/wp-admin/post.php', 942_100, 'argument', 'search')), 0);
  t.is(silenced('grafana', event('/api/ds/query', 942_100, 'argument', 'json.queries.3.rawSql')), 1);
  t.is(silenced('nextcloud', event('/remote.php/dav/files/jane', 911_100, 'all', '')), 1);
  t.is(silenced('nextcloud', editor), 0);
});

test('scans of restricted files suggest no pack for git', (t) => {
  for (const path of ['/.git/config', '/.env', '/shop/.git/HEAD'])
    t.is(silenced('git', event(path, 930_130, 'all', '')), 0);
  t.is(silenced('git', event('/team/project.git/info/refs', 930_130, 'all', '')), 1);
  t.is(silenced('git', event('/team/project/git-upload-pack', 920_420, 'header', 'Content-Type')), 1);
});
