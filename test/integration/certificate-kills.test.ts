// kill −9 of the console at each write of a certificate: while it is uploaded, replaced and published, and while the keys of
// session tickets are rotated. What was confirmed is there afterwards, of what was not there is all or nothing, and nodes get
// material that is whole.
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { SiteHttpsSchema } from '../../proto/gen/svc/config/v1/https_pb.js';
import { startTestConsole, startTestConsoleProcess, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { connectAs, enrollOne } from '../helpers/fleet.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { type TestCertificate, testCertificate } from '../helpers/site-certificates.ts';
import { StandingWrites, stand } from '../helpers/standing-writes.ts';
import { withoutJobs } from '../helpers/without-jobs.ts';

/** Of the process that dies; the one of the test has the others, without jobs. */
const DIES = ['api-gateway', 'auth', 'access-keys', 'account', 'system', 'certificates', 'session-tickets'];
/** What belongs to them is in the other process, which lives on. */
const ALONE = ['-relay', '-revision-fanout', '-canary-fanout', '-acme-fanout'];
const FATES = ['lost', 'written'] as const;
type Fate = (typeof FATES)[number];
const WRITES = ['upload', 'replace', 'publish', 'rotate'] as const;

// The write of `lost-WHAT` stands before its row is changed, that of `written-WHAT` while it is committed.
const TRIGGERS = `
  create function stand_certificate() returns trigger language plpgsql as $$ begin
    if new.name in (tg_argv[0] || '-upload', tg_argv[0] || '-replace') and (tg_op = 'INSERT') = (new.name like '%-upload') then
      ${stand('new.name')}
    end if;
    return new;
  end $$;
  create function stand_cluster() returns trigger language plpgsql as $$
  declare
    found text := (select name from cluster where id = new.cluster_id);
  begin
    if found = tg_argv[0] || '-' || tg_argv[1] and (to_jsonb(new)->>'reason' = 'certificate_updated' or tg_op = 'UPDATE') then
      ${stand('found')}
    end if;
    return new;
  end $$;
  ${[
    ['certificate', 'insert or update', 'stand_certificate', ''],
    ['config_revision', 'insert', 'stand_cluster', ", 'publish'"],
    ['session_ticket_key_set', 'update', 'stand_cluster', ", 'rotate'"],
  ]
    .map(
      ([table, event, name, what]) => `
  create trigger stand_lost before ${event} on ${table} for each row execute function ${name}('lost'${what});
  create constraint trigger stand_written after ${event} on ${table} deferrable initially deferred
    for each row execute function ${name}('written'${what});`,
    )
    .join('')}`;

let home: TestConsole;
let api: Api;
let writing: StandingWrites;

test.before(async () => {
  home = await startTestConsole({ env: withoutJobs() });
  api = new Api(home);
  writing = await StandingWrites.open(home.databaseUrl);
});

test.after.always(async () => {
  await writing?.close();
  await home?.stop();
});

const startProcess = (services: readonly string[]) =>
  startTestConsoleProcess({
    database: { url: home.databaseUrl },
    masterKey: home.env.SVC_MASTER_KEY!,
    redisPrefix: home.env.SVC_REDIS_PREFIX!,
    setUp: false,
    env: { SERVICES: services.join(',') },
  });

const inputOf = ({ chainPem, privateKeyPem }: TestCertificate) => ({ chainPem, privateKeyPem });

/** What is written when the process dies, in a cluster of its own, with a node. */
class Case {
  readonly name: string;
  clusterId = '';
  siteId = '';
  certificateId = '';
  before!: TestCertificate;
  after!: TestCertificate;
  node!: ReturnType<typeof connectAs>;

  readonly fate: Fate;
  readonly what: (typeof WRITES)[number];

  constructor(fate: Fate, what: (typeof WRITES)[number]) {
    this.fate = fate;
    this.what = what;
    this.name = `${fate}-${what}`;
  }

  async prepare(): Promise<void> {
    const domain = `${this.name}.example`;
    this.clusterId = await api.cluster(this.name);
    this.siteId = (await api.site(this.clusterId, domain)).id;
    this.node = connectAs(home, await enrollOne(home, this.clusterId, ['https-v1']));
    [this.before, this.after] = await Promise.all([testCertificate([domain]), testCertificate([domain])]);
    if (this.what === 'upload') return;
    const upload = { name: this.name, ...inputOf(this.before) };
    this.certificateId = (await api.ok('POST', '/certificates/upload', upload)).id;
    await api.ok('PUT', `/sites/${this.siteId}/https`, { settings: { certificateId: this.certificateId } });
  }

  get request(): [method: string, path: string, body: Body] {
    if (this.what === 'upload') return ['POST', '/certificates/upload', { name: this.name, ...inputOf(this.after) }];
    if (this.what === 'rotate') return ['POST', `/clusters/${this.clusterId}/session-ticket-keys/rotate`, {}];
    return ['PUT', `/certificates/${this.certificateId}`, inputOf(this.after)];
  }

  /** Fingerprint of what the site's entry names, and what nodes get of it. */
  async atNodes(): Promise<{ named: string; chain: Buffer[]; privateKey: Buffer }> {
    const entry = await api.entry(this.clusterId, 'site-https', this.siteId);
    const { certificates: refs } = fromBinary(SiteHttpsSchema, entry!);
    const { certificates } = await this.node.call('getCertificates', { certificates: refs });
    const [material] = certificates;
    return {
      named: Buffer.from(refs[0]!.fingerprint).toString('hex'),
      chain: material!.chain.map((der) => Buffer.from(der)),
      privateKey: Buffer.from(material!.privateKey),
    };
  }

  async ticketKeys(): Promise<{ version: number; keys: string[] }> {
    const { keys } = await this.node.call('getSessionTicketKeys', {});
    const all = [keys!.previous, keys!.current, keys!.next].filter(({ length }) => length > 0);
    return { version: Number(keys!.version), keys: all.map((key) => Buffer.from(key).toString('hex')) };
  }
}

test.serial(
  'whenever the console dies, certificates and ticket keys are those of before or those of after',
  async (t) => {
    t.timeout(600_000);
    const cases = FATES.flatMap((fate) => WRITES.map((what) => new Case(fate, what)));
    for (const each of cases) await each.prepare();
    const rotated = cases.filter(({ what }) => what === 'rotate');
    const firstKeys = new Map<Case, string[]>();
    for (const each of rotated) firstKeys.set(each, (await each.ticketKeys()).keys);
    await api.sql.raw(TRIGGERS);
    const names = cases.map(({ name }) => name);
    for (const name of names) await writing.hold(name);

    const dying = await startProcess([...DIES, ...ALONE]);
    const headers = { 'x-api-key': home.client.accessKey };
    // No answer where the connection breaks.
    const answers = Promise.all(
      cases.map(({ request: [method, path, body] }) =>
        dying.client.request<Body>(method, `/api/v1${path}`, body, headers).catch(() => null),
      ),
    );
    try {
      await writing.all(names);
      await dying.kill();
      await writing.decide(
        names,
        names.filter((name) => name.startsWith('lost')),
      );
    } finally {
      await dying.stop();
    }
    // Nobody confirmed what was not there.
    for (const [index, answer] of (await answers).entries())
      t.true(answer === null || (answer.status === 200 && cases[index]!.what === 'publish'), names[index]);

    const next = await startProcess([...DIES, 'housekeeping', ...ALONE]);
    try {
      for (const each of cases) {
        const written = each.fate === 'written' || each.what === 'publish';
        if (each.what === 'upload') {
          const { items } = await api.ok('GET', `/certificates?search=${each.name}`);
          t.deepEqual(
            items.map(({ status, fingerprint }: Body) => [status, fingerprint]),
            written ? [['ready', each.after.fingerprint]] : [],
            each.name,
          );
          const actions = (await api.sql('audit_entry').where({ target_name: each.name })).map(({ action }) => action);
          t.deepEqual(
            actions.filter((action) => action === 'certificate.upload'),
            written ? ['certificate.upload'] : [],
            each.name,
          );
          each.certificateId = items[0]?.id ?? (await api.ok(...each.request)).id;
          await api.ok('PUT', `/sites/${each.siteId}/https`, { settings: { certificateId: each.certificateId } });
        } else if (each.what === 'rotate') {
          const [before, { version, keys }] = [firstKeys.get(each)!, await each.ticketKeys()];
          t.is(version, written ? 2 : 1, each.name);
          t.deepEqual(keys.slice(0, 2), before, `${each.name}: keys that nodes have`);
          t.is(keys.length, written ? 3 : 2, each.name);
        }
        const wanted = each.what === 'rotate' || (each.what === 'replace' && !written) ? each.before : each.after;
        const { named, chain, privateKey } = await eventually(
          async () => {
            const found = await each.atNodes();
            return found.named === wanted.fingerprint && found;
          },
          { everyMs: 200, what: `${each.name} at the nodes` },
        );
        const leaf = new X509Certificate(chain[0]!);
        t.is(leaf.fingerprint256.replaceAll(':', '').toLowerCase(), named, each.name);
        t.true(leaf.checkPrivateKey(createPrivateKey({ key: privateKey, format: 'der', type: 'pkcs8' })), each.name);
        if (each.what === 'replace' && !written) await api.ok(...each.request);
        if (each.what === 'rotate') t.is((await api.ok(...each.request)).version, written ? '3' : '2', each.name);
        each.node.destroy();
      }
    } finally {
      await next.stop();
    }
  },
);
