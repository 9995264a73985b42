// A question with two answers, over whatever the page shows: App.vue has the dialog.
import { shallowRef } from 'vue';

export interface Question {
  title: string;
  text: string;
  /** What the button that goes on says, and the one that changes nothing. */
  yes: string;
  no: string;
}

export const question = shallowRef<(Question & { answer(yes: boolean): void }) | null>(null);

/** Whether the operator goes on. A later question takes the place of one without a decision, which counts as no. */
export function ask(words: Question): Promise<boolean> {
  return new Promise((resolve) => {
    // Not within the key press that leads here: an Escape would cancel the new dialog as well.
    window.setTimeout(() => {
      question.value?.answer(false);
      question.value = {
        ...words,
        answer(yes) {
          question.value = null;
          resolve(yes);
        },
      };
    });
  });
}
