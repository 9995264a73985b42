// Rows of a list that dialogs edit and delete; each reads the list again.
import { computed, shallowRef } from 'vue';

export function useEditedRows<Row>(list: { reload: () => Promise<unknown> }) {
  const editing = shallowRef<Row | 'new' | null>(null);
  const deleting = shallowRef<Row | null>(null);
  return {
    /** The row whose dialog is open; `new`: one is added. */
    editing,
    /** What that dialog begins with; null: nothing. */
    edited: computed(() => (editing.value === 'new' ? null : editing.value)),
    deleting,
    onSaved(): void {
      editing.value = null;
      void list.reload();
    },
    async onDeleted(): Promise<void> {
      await list.reload();
      deleting.value = null;
    },
  };
}
