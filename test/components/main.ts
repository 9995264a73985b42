// Shows one shared part of the Web UI by itself: `/table` is Table.vue of this folder, in the console's styles and words.
import '@/shared/styles/element.css';
import '@/shared/styles/tokens.css';
import '@/shared/styles/base.css';
import { createPinia } from 'pinia';
import { createApp, h } from 'vue';
import { createRouter, createWebHistory, RouterView } from 'vue-router';
import { i18n, loadMessages } from '@/shared/i18n/i18n.ts';

const parts = import.meta.glob('./*.vue');
const routes = Object.entries(parts).map(([file, component]) => ({
  path: `/${file.slice('./'.length, -'.vue'.length).toLowerCase()}`,
  component,
}));
const app = createApp({ render: () => h('main', { class: 'svc-stack' }, [h('h1', 'Part'), h(RouterView)]) });
app.use(createPinia());
app.use(i18n);
app.use(createRouter({ history: createWebHistory(), routes }));
await loadMessages(['shared', 'rules']);
app.mount('#app');
