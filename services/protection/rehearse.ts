// What a change of thresholds would have done in the last hour. Each question has a number or the reason why there is none:
// nodes report levels, bans and their heaviest clients, and requests by minute, nothing else.
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { ccTemplate } from '../../contract/resources/cc-template.ts';
import type { ProtectionOfSite, protection } from '../../contract/resources/protection.ts';
import type { CcThresholds } from '../../contract/scalars/cc-thresholds.ts';
import { readCcTemplate } from '../../models/security/protection-setting.ts';
import { banLengths, eventFigures, followers, sitesAbove } from '../../models/security/rehearsal.ts';
import { readSiteProtection } from '../../models/security/site-protection.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { merge } from './site-protection.ts';

type Rehearsal = Output<typeof protection.rehearse>;
type Answer = Rehearsal['answers'][number];
type Sql = Runtime['pools']['api'];

const HOUR_MS = 3_600_000;
const STRENGTH = ['passTtlSeconds', 'powDifficulty', 'powHighDifficulty'] as const;

/** Throws SITE_NOT_FOUND, PROTECTION_POW_DIFFICULTY. */
export async function rehearseProtection(
  { pools }: Runtime,
  input: Input<typeof protection.rehearse>,
): Promise<Rehearsal> {
  const sql = pools.api;
  const { id, settings, ccTemplate: template } = (await readSiteProtection(sql, input.id)) ?? fail('SITE_NOT_FOUND');
  const after = merge(settings, input);
  const answers = await rehearse(sql, [id], effective(settings, template), effective(after, template));
  const harder = STRENGTH.some((field) => settings[field] !== after[field]);
  return rehearsal([...answers, ...(harder ? [lacking('challenges', 'not_reported')] : [])]);
}

/** The same for all sites that follow the template. */
export async function rehearseTemplate(
  { pools }: Runtime,
  input: Input<typeof ccTemplate.rehearse>,
): Promise<Rehearsal> {
  const before = await readCcTemplate(pools.api);
  return rehearsal(await rehearse(pools.api, await followers(pools.api), before, { ...before, ...input }));
}

/** The hour up to now with these answers. */
function rehearsal(answers: Answer[]): Rehearsal {
  const now = Date.now();
  return { from: new Date(now - HOUR_MS).toISOString(), until: new Date(now).toISOString(), answers };
}

/** Thresholds that nodes use; all off while the policy is. */
function effective({ cc }: ProtectionOfSite, template: CcThresholds): CcThresholds {
  const { enabled, followTemplate, ...own } = cc;
  const thresholds = followTemplate ? template : own;
  return enabled ? thresholds : { ...thresholds, siteQps: 0, urlQps: 0, ipQps: 0, originErrorPercent: 0 };
}

async function rehearse(
  sql: Sql,
  siteIds: readonly string[],
  before: CcThresholds,
  after: CcThresholds,
): Promise<Answer[]> {
  const differ = (...fields: (keyof CcThresholds)[]) => fields.some((field) => before[field] !== after[field]);
  const clients = differ('ipQps');
  const sites = differ('siteQps') || (after.siteQps > 0 && differ('escalateAfterSeconds'));
  const paths = differ('urlQps');
  const errors = differ('originErrorPercent');
  if (!clients && !sites && !paths && !errors && !differ('ipBanSeconds')) return [];
  const minutes = Math.max(1, Math.ceil(after.escalateAfterSeconds / 60));
  const [told, above, lengths] = await Promise.all([
    eventFigures(sql, siteIds, after),
    sites && after.siteQps > 0 ? sitesAbove(sql, siteIds, after.siteQps, minutes) : 0,
    banLengths(sql, siteIds, after.ipBanSeconds),
  ]);
  const answers: Answer[] = [];
  /** A threshold of 0 does nothing, whatever was reported. */
  const add = (question: Answer['question'], on: boolean, count: number | null, were: number, lacks: Answer['lacks']) =>
    answers.push({ question, count: on ? count : 0, were, lacks: on && count === null ? lacks : null });
  const heard = (events: number, count: number) => (events > 0 ? count : null);
  if (clients) add('clients_banned', after.ipQps > 0, heard(told.events, told.clients), told.clientsWere, 'no_events');
  if (differ('ipBanSeconds'))
    answers.push({ question: 'bans_ended', count: lengths.ended, were: lengths.endedWere, lacks: null });
  if (sites) add('sites_raised', after.siteQps > 0, above, told.sitesWere, 'no_reports');
  if (errors)
    add(
      'sites_raised_by_errors',
      after.originErrorPercent > 0,
      heard(told.errorEvents, told.erring),
      told.erringWere,
      'no_events',
    );
  if (paths) add('paths_raised', after.urlQps > 0, heard(told.events, told.paths), told.pathsWere, 'no_events');
  return answers;
}

function lacking(question: Answer['question'], lacks: Answer['lacks']): Answer {
  return { question, count: null, were: null, lacks };
}
