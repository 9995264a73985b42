// Leaving a page with unsaved changes asks first: by route, and by closing the tab.
import { onBeforeUnmount, onMounted } from 'vue';
import { useI18n } from 'vue-i18n';
import { onBeforeRouteLeave, onBeforeRouteUpdate } from 'vue-router';
import { ask } from '@/shared/dialog/ask.ts';

/** A dialog is gone with the address that opened it: `anyAddress` asks at every change of the address. */
export function useLeaveGuard(isDirty: () => boolean, anyAddress = false): void {
  const { t } = useI18n();
  const mayLeave = () =>
    !isDirty() ||
    ask({
      title: t('shared.form.leaveTitle'),
      text: t('shared.form.lost'),
      yes: t('shared.form.leave'),
      no: t('shared.form.stay'),
    });
  onBeforeRouteLeave(mayLeave);
  onBeforeRouteUpdate((to, from) => (!anyAddress && to.path === from.path) || mayLeave());
  const onUnload = (event: BeforeUnloadEvent) => {
    if (isDirty()) event.preventDefault();
  };
  onMounted(() => window.addEventListener('beforeunload', onUnload));
  onBeforeUnmount(() => window.removeEventListener('beforeunload', onUnload));
}
