import { ref } from 'vue';

/** Whether files of this build are gone from the console: it was upgraded meanwhile. */
export const staleBuild = ref(false);
