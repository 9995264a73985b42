// The words of this product: what is said for a concept, what is never said for it, and what no sentence begins with.
// Specified names win: they stand in code spans, which are not looked at, or in ALLOWED.

export type Area = 'documents' | 'contract' | 'en' | 'zh-CN';

export interface LanguageRule {
  never: RegExp;
  /** For the failure: what to say instead. */
  say: string;
  /** A sentence that matches this may have it. */
  unless?: RegExp;
  /** Unless given: every area of English. */
  areas?: readonly Area[];
}

/** Concept by concept. */
const TERMS: readonly LanguageRule[] = [
  {
    never: /\banswer(s|ed|ing)?\b/i,
    say: '“response”, “return” or “respond”',
    unless: /\b(challenges?|captchas?|DNS|proof of work)\b/i,
  },
  { never: /(?<!page )\b[Hh]eads?\b/, say: '“headers”', unless: /\bfile\b/ },
  { never: /\bfields after a body\b/i, say: '“trailers”' },
  {
    never: /\bauthorit(y|ies)\b/i,
    say: '“certificate authority” or “CA”',
    unless: /\bcertificate authorit(y|ies)\b/i,
  },
  { never: /\b(people|who comes)\b/i, say: '“client” (API, documents) or “visitor” (Web UI)' },
  { never: /\bmend(s|ed|ing)?\b/i, say: '“fix” or “repair”' },
  { never: /\b99 %( of)?/, say: '“p99”' },
  {
    never: /\bheld\b/i,
    say: '“lacking” or “Upgrade required” of an entry, “deferred” of a verdict, “kept” of data',
    unless: /\b(sockets?|locks?|held by)\b/i,
  },
  { never: /\bfeatures? (that|which) (a |the )?nodes?\b|\bnodes?['’]s? features?\b/i, say: '“capability”' },
  { never: /\bheard (of|from)\b/i, say: '“last seen”' },
  { never: /\bneeds? (somebody|someone)\b/i, say: '“Needs attention”' },
  { never: /\b(take|takes|taken|taking|took) away\b/i, say: '“delete” (an object) or “remove” (from a list)' },
  {
    never: /(?<!\b(can|to|cannot) )\b(tells?|told) (how|which|whether|what|why|that)\b/i,
    say: '“returns”, “shows” or “reports”',
  },
  { never: /\bchallenges? of (a|an|the) (CA|certificate authority)\b/i, say: '“validation (HTTP-01, DNS-01)”' },
  { never: /\bplatform\b/i, say: '“Global”', areas: ['en'] },
  {
    never:
      /\b(colou?r(?<=our)\w*|behaviours?|centres?|licences?|organisations?|recogni[sz]e(?<=ise)\w*|enrols?|enrolments?|favourites?)\b/i,
    say: 'the American spelling',
  },
  { never: /应答|回答/, say: '“响应”（质询除外）', unless: /质询|验证码|DNS/, areas: ['zh-CN'] },
  { never: /头部|报头/, say: '“标头”', areas: ['zh-CN'] },
  { never: /访问者/, say: '“访客”', areas: ['zh-CN'] },
  { never: /变更|修改/, say: '“更改”', areas: ['zh-CN'] },
  { never: /挑战/, say: '“质询”', areas: ['zh-CN'] },
  { never: /证书机构|权威机构|签发机构/, say: '“证书颁发机构”或“CA”', areas: ['zh-CN'] },
];

/** The subject is the node, the console, the edge, the client, the operator, the request. */
const OPENINGS: readonly LanguageRule[] = [
  {
    never: /^["'“(]?(What|Who|Whoever|Whom|Whose|That which|Nobody|Somebody|Someone|Everybody|Everyone)\s+\S+\s/,
    say: 'the actor or the thing first: the node, the console, the edge, the client, the operator, the request',
    unless: /\?$/,
  },
];

const PHRASES: readonly LanguageRule[] = [
  { never: /\bwhoever\b/i, say: 'the actor: “a client that …”' },
  {
    never: /\b(no|some|every)body\b/i,
    say: 'the actor: “the operator”, “another client”, “all nodes”',
    areas: ['documents'],
  },
  { never: /\bthe way back\b/i, say: 'the action: “To downgrade, restore the backup.”' },
  { never: /\bdo(es)? no harm\b|\bwhen in doubt\b/i, say: '“Running it unnecessarily is safe.”' },
  { never: /\b(mistake|side|fault) of ours\b|\bon our side\b/i, say: '“A bug. Search the log for this request ID.”' },
  { never: /\bof no (site|meaning|node|cluster)\b/i, say: '“No site in this cluster has …”' },
  { never: /\bleft alone\b/i, say: '“paused”, “not changed” or “honors Retry-After”' },
  { never: /\bthe same request again\b/i, say: '“Idempotency” or “a retry”' },
  { never: /\bthat felt\b/i, say: '“that detected”' },
  { never: /\bnobody looks\b/i, say: '“is not inspected”' },
];

export const RULES: readonly LanguageRule[] = [...TERMS, ...OPENINGS, ...PHRASES];

export interface Allowed {
  file: string;
  /** Part of the sentence. */
  text: string;
  why: string;
}

export const ALLOWED: readonly Allowed[] = [
  { file: 'console/README.md', text: 'heard of', why: 'a word of the glossary that is not to be used' },
];

/** The first use on a page explains it. */
export const EXPANDED: { term: RegExp; whole: string } = {
  term: /\bCC\b(?! BY)/,
  whole: 'CC mitigation (HTTP flood protection)',
};

export const MAX_WORDS = 40;
export const NINETIETH_WORDS = 25;
