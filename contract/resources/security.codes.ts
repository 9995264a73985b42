import type { AlertKindEntries } from '../alert-kind.ts';
import type { AttentionEntries } from '../attention-entry.ts';

export const attention = {
  sites_above_normal: { order: 30, level: 'watch', page: '/protection/incidents' },
} satisfies AttentionEntries;

export const alerts = {
  cc_mitigation: {
    order: 70,
    audience: 'site',
    text: {
      en: {
        firing: 'CC mitigation raised for site {name} to level {level}.',
        resolved: 'Site {name} is back at the normal level.',
      },
      'zh-CN': { firing: '站点 {name} 的 CC 防护已升到等级 {level}。', resolved: '站点 {name} 已回到正常等级。' },
    },
  },
} satisfies AlertKindEntries;
