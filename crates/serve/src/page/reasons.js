// Reasons of the selection, in the words of `rep match`.

const join = (fields) => fields.join(", ");
const plus = (boost) => `+${boost.toFixed(2)}`;

const WORDS = {
  hint: (one) => `named as “${one.named}”`,
  event: (one) => `started by the event ${one.event}`,
  path: (one) => `${one.path} matches its paths ${one.glob}`,
  phrase: (one) => `trigger phrase “${one.phrase}”`,
  pattern: (one) => `trigger pattern /${one.pattern}/ matches “${one.matched}”`,
  word: (one) => `“${one.word}”${one.as_word ? ` (as “${one.as_word}”)` : ""} in ${join(one.fields)}`,
  meaning: (one) => `meaning ${one.closeness.toFixed(2)} close`,
  sentence: (one) => `answers “${one.sentence}” best`,
  conversation: (one) => `fits the conversation (${plus(one.boost)})`,
  usage: (one) => `used ${one.times} times before (${plus(one.boost)})`,
  agent: (one) => `made for the agent ${one.agent} (${plus(one.boost)})`,
  need: (one) => `needed by ${one.by}`,
  not: (one) => `not for “${one.phrase}”, by its triggers`,
  "not-for": (one) => `not for “${one.words.join(", ")}”, by its description`,
};

/** A reason in words. */
export const reason = (one) => (WORDS[one.kind] ? WORDS[one.kind](one) : one.kind);

/** Whether it speaks against the skill. */
export const isAgainst = (one) => one.kind === "not" || one.kind === "not-for";

/** What kept a skill out, in words. */
export function lacked(one) {
  if (!one) return "";
  if (one.kind === "score") return `under the threshold of ${one.threshold.toFixed(2)}`;
  if (one.kind === "room") return `at most ${one.max_skills} are picked`;
  if (one.kind === "name") return "may only be used when it is named";
  return "skills are picked only when they are named";
}
