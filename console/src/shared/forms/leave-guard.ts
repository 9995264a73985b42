// Leaving a page with unsaved changes asks first: by route, and by closing the tab.
import { onBeforeUnmount, onMounted } from 'vue';
import { useI18n } from 'vue-i18n';
import { onBeforeRouteLeave, onBeforeRouteUpdate } from 'vue-router';

/** A dialog is gone with the address that opened it: `anyAddress` asks at every change of the address. */
export function useLeaveGuard(isDirty: () => boolean, anyAddress = false): void {
  const { t } = useI18n();
  const ask = () => !isDirty() || window.confirm(t('shared.form.leave'));
  onBeforeRouteLeave(ask);
  onBeforeRouteUpdate((to, from) => (!anyAddress && to.path === from.path) || ask());
  const onUnload = (event: BeforeUnloadEvent) => {
    if (isDirty()) event.preventDefault();
  };
  onMounted(() => window.addEventListener('beforeunload', onUnload));
  onBeforeUnmount(() => window.removeEventListener('beforeunload', onUnload));
}
