import { ref } from 'vue';

/** Whether the list of keys is shown; `?` opens it outside of text fields. */
export const keyboardHelp = ref(false);
