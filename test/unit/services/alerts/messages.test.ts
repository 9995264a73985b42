// What messages about alerts say, and how services receive them.
import { createHmac } from 'node:crypto';
import test from 'ava';
import { ALERT_LOCALES } from '../../../../contract/alert-kind.ts';
import { ALERT_KINDS, ALERTS } from '../../../../contract/resources/alerts.ts';
import type { Runtime } from '../../../../runtime/runtime.ts';
import { messageOf, testMessage, textOf } from '../../../../services/alerts/message.ts';
import { SendFailed } from '../../../../services/alerts/send-failed.ts';
import { dingtalk } from '../../../../services/alerts/senders/dingtalk.ts';
import { slack } from '../../../../services/alerts/senders/slack.ts';
import { signatureOf } from '../../../../services/alerts/senders/webhook.ts';
import { wecom } from '../../../../services/alerts/senders/wecom.ts';
import { startHooks } from '../../../helpers/hooks.ts';

/** What alerts have in their detail, by kind. */
const DETAIL = {
  percent: 20.04,
  level: 2,
  observed: 12.34,
  notAfter: '2026-11-27 12:00 UTC',
  error: 'dns_unreachable',
};
const runtime = { env: { outboundAllow: ['127.0.0.0/8'] } } as unknown as Runtime;
const message = { ...testMessage('id', 'en', 'https://console.example/', new Date(0)), text: 'A <b> & c' };

for (const kind of ALERT_KINDS)
  for (const locale of ALERT_LOCALES)
    test(`${kind} in ${locale}: both messages name their subject, and every word is filled in`, (t) => {
      for (const status of ['firing', 'resolved'] as const) {
        t.true(ALERTS[kind].text[locale][status].includes('{name}'));
        const text = textOf(kind, status, { name: 'a.example', detail: DETAIL }, locale);
        t.true(text.includes('a.example'));
        t.notRegex(text, /[{}]|\? |NaN|undefined/);
      }
    });

test('names of people begin no line, and are cut', (t) => {
  const text = textOf('node_offline', 'firing', { name: `a\r\nBcc: b\u2028${'x'.repeat(2000)}`, detail: {} }, 'en');
  t.notRegex(text, /[\r\n\u2028]/);
  t.is(text.length, 1000);
  t.is(
    textOf('stored_rule_invalid', 'firing', { name: '', detail: {} }, 'zh-CN'),
    '整个平台 已保存的规则不再有效。节点沿用其最后有效的版本。',
  );
});

test('a message about a site leads to its page, any other to the list of alerts', (t) => {
  const facts = { siteId: 's/1', name: 'a', resourceId: 's/1', detail: {} };
  const of = {
    id: 'd',
    kind: 'high_5xx',
    status: 'firing',
    occurredAt: new Date(0),
    locale: 'en',
    others: 0,
    otherFacts: [],
  } as const;
  t.is(messageOf({ ...of, facts }, 'https://console.example').url, 'https://console.example/sites/s%2F1');
  const { url } = messageOf({ ...of, facts: { ...facts, siteId: null } }, 'https://console.example');
  t.is(url, 'https://console.example/alerts');
});

test('a message about many names the first of them and how many there are, on one line', (t) => {
  const facts = (name: string) => ({ siteId: null, name, resourceId: name, detail: {} });
  const of = { id: 'd', kind: 'node_offline', status: 'firing', occurredAt: new Date(0) } as const;
  const group = { facts: facts('one'), others: 12, otherFacts: [facts('two'), facts('th\nree')] };
  const english = messageOf({ ...of, ...group, locale: 'en' }, 'https://console.example');
  t.is(english.text, 'Node one does not respond. The same for 12 more: two, th ree…');
  t.like(english.body, { others: 12, group: [{ siteName: 'two', resourceId: 'two' }, { resourceId: 'th\nree' }] });
  const chinese = messageOf({ ...of, ...group, others: 2, locale: 'zh-CN' }, 'https://console.example');
  t.regex(chinese.text, /另有 2 个相同告警：two、th ree。$/);
});

test('a signature is that of Standard Webhooks', (t) => {
  const key = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const mac = createHmac('sha256', Buffer.from(key.slice(6), 'base64')).update('msg_1.1614265330.{"test": 1}');
  t.is(signatureOf(key, 'msg_1', '1614265330', '{"test": 1}'), `v1,${mac.digest('base64')}`);
});

test('services receive the text and the page; a refusal with status 200 is one', async (t) => {
  const hooks = await startHooks();
  t.teardown(() => hooks.stop());
  const { url } = hooks;
  hooks.answer = '{"errcode":0}';
  await dingtalk.send(runtime, { kind: 'dingtalk', url: `${url}/robot?access_token=x`, secret: 'SEC' }, message);
  await wecom.send(runtime, { kind: 'wecom', url }, message);
  await slack.send(runtime, { kind: 'slack', url }, message);
  const [first, second, third] = hooks.received;
  const query = new URL(`http://x${first!.path}`).searchParams;
  const signed = `${query.get('timestamp')}\nSEC`;
  t.is(query.get('sign'), createHmac('sha256', 'SEC').update(signed).digest('base64'));
  t.is(query.get('access_token'), 'x');
  for (const { body } of [first!, second!])
    t.deepEqual(body, { msgtype: 'text', text: { content: 'A <b> & c\nhttps://console.example/alerts' } });
  t.is(third!.body.text, 'A &lt;b&gt; &amp; c\nhttps://console.example/alerts');
  hooks.answer = '{"errcode":310000,"errmsg":"sign not match"}';
  const refused = () => dingtalk.send(runtime, { kind: 'dingtalk', url }, message);
  t.is((await t.throwsAsync(refused, { instanceOf: SendFailed }))?.reason, 'rejected');
});
