import type { Feature } from '@/app/feature.ts';

const title = { en: 'WAF', 'zh-CN': 'WAF' };
const events = { en: 'WAF events', 'zh-CN': 'WAF 事件' };

export default {
  parts: [
    {
      of: 'site',
      name: 'waf',
      group: 'protection',
      order: 20,
      title,
      docs: 'waf',
      component: () => import('./WafTab.vue'),
    },
    {
      of: 'site',
      name: 'waf-events',
      group: 'protection',
      order: 45,
      title: events,
      docs: 'waf',
      component: () => import('./WafEvents.vue'),
    },
  ],
} satisfies Feature;
