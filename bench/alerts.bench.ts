// Messages about 1,000 alerts through a webhook and a mail server, while the process that sends them is killed again and again and
// both receivers are away in turns. Counted by id: a lost alert is one that no message to a receiver told of, alone or with others; a
// double is a message that came twice, which must have the same id. Beside it a pair of Debian's Alertmanager with the same webhook and kills.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemCall } from '../runtime/call.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { createChannel } from '../services/alerts/channels.ts';
import { setSmtp } from '../services/alerts/smtp.ts';
import { startAlertmanagers } from './alerts/alertmanager.ts';
import { startBenchRuntime } from './lib/bench-runtime.ts';
import { type Hooks, startHooks } from './lib/hooks.ts';
import { startMailServer } from './lib/mail-server.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title =
  'messages about alerts with a killed leader and receivers that are away, beside an Alertmanager pair';
export const needs = ['exim4', 'prometheus-alertmanager'];

const AWAY = 503;
const KILL_EVERY_MS = 4_000;
/** Failed messages are tried again after 2 and 4 minutes. */
const LONGEST_MS = 15 * 60_000;
/** Alerts of each kind that begin at once: more of them would become one message. */
const AT_ONCE = 3;
const KINDS = ['high_5xx', 'site_failing', 'origin_unavailable', 'waf_share', 'cc_mitigation', 'certificate_expiring'];

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const alerts = quick ? 60 : 1000;
  const kills = quick ? 3 : 20;
  const [hooks, sink, mail, bench] = await Promise.all([
    startHooks(),
    startHooks(),
    startMailServer(),
    startBenchRuntime('alerts', { SVC_OUTBOUND_ALLOW_CIDRS: '127.0.0.0/8,::1/128' }),
  ]);
  const { runtime } = bench;
  const sql = runtime.pools.api;
  const pair = await startAlertmanagers(`${sink.url}/`);
  const senders = startSenders(runtime, bench.env);
  try {
    await makeChannels(runtime, hooks, mail);
    const ids = Array.from({ length: alerts }, () => randomUUID());
    let begun = 0;
    let done = 0;
    const kill = async () => {
      while (done < kills) {
        await sleep(KILL_EVERY_MS);
        // The webhook is away in every third turn, and the mail server in another.
        hooks.status = sink.status = done % 3 === 0 ? AWAY : 200;
        await sql('alert_smtp').update({ settings: smtpAt(mail, done % 3 === 1 ? 1 : mail.ports.tls) });
        await Promise.all([senders.kill(), pair.kill(done % 2)]);
        done++;
      }
      hooks.status = sink.status = 200;
      await sql('alert_smtp').update({ settings: smtpAt(mail, mail.ports.tls) });
    };
    const begin = async () => {
      const perTurn = Math.ceil(alerts / Math.max(1, (kills * KILL_EVERY_MS) / 1000));
      while (begun < alerts) {
        const some = ids.slice(begun, begun + Math.min(perTurn, KINDS.length * AT_ONCE));
        await sql('alert').insert(
          some.map((id, at) => ({
            id,
            kind: KINDS[at % KINDS.length],
            site_id: id,
            started_at: new Date(),
            detail: JSON.stringify({ name: id, level: 1, percent: 50, minutes: 5, hours: 72, nodes: 1 }),
          })),
        );
        begun += some.length;
        await pair.post(some);
        await sleep(1000);
        // As if all before had been told long ago: gathering is not what is measured.
        await sql.raw(`update alert_delivery set created_at = created_at - interval '1 hour', due_at = least(due_at,
          case when attempts = 0 then now() else due_at end)`);
      }
    };
    const repeat = new AbortController();
    const repeating = (async () => {
      // Prometheus posts what still fires again and again.
      while (!repeat.signal.aborted) {
        for (let at = 0; at < begun; at += 100) await pair.post(ids.slice(at, Math.min(begun, at + 100)));
        await sleep(15_000, undefined, { signal: repeat.signal }).catch(() => undefined);
      }
    })();
    await Promise.all([kill(), begin()]);
    log(`${begun} alerts began, ${kills} kills`);
    const until = Date.now() + LONGEST_MS;
    const waiting = async () =>
      Number((await sql('alert_delivery').where({ state: 'waiting' }).count({ n: '*' }))[0]!.n);
    while ((begun < alerts || (await waiting()) > 0) && Date.now() < until) await sleep(1000);
    while (new Set(namesOf(sink)).size < alerts && Date.now() < until) await sleep(1000);
    repeat.abort();
    await repeating;
    const inState = async (state: string) =>
      Number((await sql('alert_delivery').where({ state }).count({ n: '*' }))[0]!.n);
    const [grouped, givenUp] = [await inState('grouped'), await inState('failed')];
    const deliveries = await sql('alert_delivery as d')
      .join('alert_channel as c', 'c.id', 'd.channel_id')
      .select<Delivery[]>('d.alert_id', 'c.name', sql.raw('coalesce(d.group_id, d.id) as message'));
    const of = (channel: string, messages: readonly Message[]) =>
      counted(
        deliveries.filter(({ name }) => name === channel),
        messages,
      );
    const webhook = of(
      'webhook',
      hooks.received
        .filter(({ status }) => status !== AWAY)
        .map(({ body }) => ({ id: body.id, names: [body, ...body.group].map(({ resourceId }) => resourceId) })),
    );
    const mails = of(
      'mail',
      mail.mails().map((text) => ({ id: messageIdOf(text), names: namesIn(text) })),
    );
    const others = counted(
      ids.map((id) => ({ alert_id: id, name: 'pair', message: id })),
      namesOf(sink).map((name) => ({ id: name, names: [name] })),
    );
    const ours = [webhook, mails];
    return {
      figures: {
        alerts,
        kills,
        grouped,
        givenUp,
        webhook: figures(webhook, alerts),
        mail: figures(mails, alerts),
        alertmanagerPair: figures(others, alerts),
      },
      aims: [
        { aim: 'no alert is lost', reached: ours.every(({ told }) => told === alerts) },
        { aim: 'doubles have the id of the first', reached: ours.every(({ strange }) => strange === 0) },
        {
          aim: 'at most one double a kill and attempt under way',
          reached: ours.every(({ doubles }) => doubles <= 2 * kills),
        },
      ],
      programs: { 'prometheus-alertmanager': ['prometheus-alertmanager', '--version'] },
      notes: [
        'The stores run without fsync. Messages that fail are tried again after 2 minutes and more.',
        'Alertmanager tells of each alert in a message of its own and knows no id by which a double is recognized.',
      ],
    };
  } finally {
    await senders.stop();
    await pair.stop();
    await Promise.all([bench.stop(), hooks.stop(), sink.stop(), mail.stop()]);
  }
}

type Mail = Awaited<ReturnType<typeof startMailServer>>;

const smtpAt = ({ user, ca }: Mail, port: number) =>
  JSON.stringify({ host: 'localhost', port, secure: true, from: 'console@example.com', username: user, ca });

async function makeChannels(runtime: Runtime, hooks: Hooks, mail: Mail): Promise<void> {
  const call = systemCall('bench');
  await setSmtp(
    runtime,
    {
      host: 'localhost',
      port: mail.ports.tls,
      secure: true,
      from: 'console@example.com',
      username: mail.user,
      password: mail.password,
      ca: mail.ca,
    },
    call,
  );
  await createChannel(runtime, { name: 'webhook', platform: true, config: { kind: 'webhook', url: hooks.url } }, call);
  const to = ['oncall@example.com'];
  await createChannel(runtime, { name: 'mail', platform: true, config: { kind: 'email', to } }, call);
}

/** Two processes, of which one leads at a time. */
function startSenders(runtime: Runtime, env: Record<string, string>) {
  let leading = 0;
  const start = (which: number): ChildProcess => {
    const child = spawn(process.execPath, [new URL('./alerts/sender.ts', import.meta.url).pathname], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      env: { PATH: process.env.PATH, ...env },
    });
    child.on('message', () => {
      leading = which;
    });
    return child;
  };
  const children = [start(0), start(1)];
  const end = async (which: number) => {
    const child = children[which]!;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
  void runtime;
  return {
    kill: async () => {
      const which = leading;
      await end(which);
      children[which] = start(which);
    },
    stop: () => Promise.all([end(0), end(1)]),
  };
}

const namesOf = (sink: Hooks): string[] =>
  sink.received
    .filter(({ status }) => status !== AWAY)
    .flatMap(({ body }) => body.alerts.map(({ labels }: { labels: { alertname: string } }) => labels.alertname));
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
const namesIn = (text: string): string[] => [...new Set(plainOf(text).match(UUID))];
const messageIdOf = (text: string) => /^\d{3}[ I] Message-ID: <([^@]*)@/im.exec(text)?.[1] ?? '';
/** Without the headers, and with soft line breaks taken out. */
const plainOf = (text: string) => text.slice(text.search(/\n[^\n]*-D\n/)).replaceAll('=\n', '');

/** What an alert is told by: a message of its own, or one that tells of several. */
interface Delivery {
  alert_id: string;
  /** Of the channel. */
  name: string;
  message: string;
}

interface Message {
  id: string;
  /** Alerts that it names. */
  names: readonly string[];
}

interface Counted {
  told: number;
  messages: number;
  doubles: number;
  /** Alerts that messages with different ids name. */
  strange: number;
}

function counted(deliveries: readonly Delivery[], messages: readonly Message[]): Counted {
  const received = new Set(messages.map(({ id }) => id));
  const named = new Map<string, Set<string>>();
  for (const { id, names } of messages)
    for (const name of names) named.set(name, (named.get(name) ?? new Set()).add(id));
  return {
    told: new Set(deliveries.filter(({ message }) => received.has(message)).map(({ alert_id }) => alert_id)).size,
    messages: messages.length,
    doubles: messages.length - received.size,
    strange: [...named.values()].filter((ids) => ids.size > 1).length,
  };
}

const figures = ({ told, messages, doubles, strange }: Counted, alerts: number) => ({
  told,
  lost: alerts - told,
  messages,
  doubles,
  toldUnderTwoIds: strange,
});
