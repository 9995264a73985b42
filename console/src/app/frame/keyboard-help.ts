import { ref } from 'vue';

/** Whether the list of keys is shown; `?` opens it where nobody types. */
export const keyboardHelp = ref(false);
