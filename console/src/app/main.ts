import '@/shared/styles/element.css';
import '@/shared/styles/tokens.css';
import '@/shared/styles/base.css';
import { createPinia } from 'pinia';
import { createApp } from 'vue';
import { useChanges } from '@/app/activity/changes.ts';
import { setCallHooks } from '@/shared/api/call.ts';
import { watchConnection } from '@/shared/connection/connection.ts';
import { i18n, loadMessages } from '@/shared/i18n/i18n.ts';
import { useSession } from '@/shared/session/session.ts';
import App from './App.vue';
import './preferences.ts';
import { noteLoadFailure } from './load-failure.ts';
import { router } from './router.ts';

const app = createApp(App);
app.use(createPinia());
app.use(i18n);
const session = useSession();
const changes = useChanges();
setCallHooks({
  sessionEnded: () => session.ended(),
  changesPublished: (ids, subject) => changes.follow(ids, subject),
});
watchConnection();
// Without its files a page is blank, or a part of it is missing.
window.addEventListener('vite:preloadError', (event) => {
  event.preventDefault();
  noteLoadFailure();
});
// The way to the first page begins while its words arrive.
const words = loadMessages(['app', 'shared']);
app.use(router);
try {
  await words;
  app.mount('#app');
} catch {
  window.dispatchEvent(new Event('svc-start-failed'));
}
