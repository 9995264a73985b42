import type { Lock, Surface } from '../helpers/surfaces.ts';

const config = { kind: 'webhook', url: 'https://hook.example.net/' } as const;
const policy = {};
const smtp = { host: '', from: '' };

/** Settings that have been saved before. */
const saved = (path: string, body: Record<string, unknown>): Lock => ({
  make: async (api) => {
    await api.ok('PUT', path, body);
    return path;
  },
  request: () => ['PUT', path, body],
});

export const surface: Surface = {
  async calls(api) {
    const channel = await api.ok('POST', '/alerts/channels', { name: 'Surface', config });
    const subscribed = { channelId: channel.id, kinds: ['node_offline'], allSites: true };
    const subscription = await api.ok('POST', '/alerts/subscriptions', subscribed);
    // A channel has one subscription: the first call makes it.
    const { id: channelId } = await api.ok('POST', '/alerts/channels', { name: 'Unsubscribed', config });
    return {
      paths: {
        'alerts.channels.update': { id: channel.id },
        'alerts.channels.test': { id: channel.id },
        'alerts.subscriptions.update': { id: subscription.id },
      },
      fresh: {
        'alerts.channels.delete': {
          path: '/alerts/channels',
          body: { name: 'Deleted {n}', config },
          id: ['id'],
          parameter: 'id',
        },
        'alerts.silences.delete': {
          path: '/alerts/silences',
          body: { kinds: ['node_offline'], reason: 'Ended {n}', durationSeconds: 300 },
          id: ['id'],
          parameter: 'id',
        },
      },
      bodies: {
        'alerts.silences.create': { kinds: ['node_offline'], reason: 'Silenced {n}', durationSeconds: 300 },
        'alerts.channels.create': { name: 'Created {n}', config },
        'alerts.channels.update': { name: 'Changed {n}' },
        'alerts.policy.set': policy,
        'alerts.smtp.set': smtp,
        'alerts.subscriptions.create': { ...subscribed, channelId },
        'alerts.subscriptions.update': { kinds: ['node_offline'], allSites: true },
      },
    };
  },
  locks: {
    'alerts.channels.update': {
      make: async (api, unique) => (await api.ok('POST', '/alerts/channels', { name: unique('lock'), config })).id,
      request: (id, unique) => ['PUT', `/alerts/channels/${id}`, { name: unique('locked') }],
    },
    'alerts.policy.set': saved('/alerts/policy', policy),
    'alerts.smtp.set': saved('/alerts/smtp', smtp),
    'alerts.subscriptions.update': {
      make: async (api, unique) => {
        const channel = await api.ok('POST', '/alerts/channels', { name: unique('lock'), config });
        const subscribed = { channelId: channel.id, kinds: ['node_offline'], allSites: true };
        return (await api.ok('POST', '/alerts/subscriptions', subscribed)).id;
      },
      request: (id) => ['PUT', `/alerts/subscriptions/${id}`, { kinds: ['high_5xx'], allSites: true }],
    },
  },
};
