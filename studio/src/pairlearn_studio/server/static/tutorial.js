// Three practice pairs. They describe in words how sure one would be of each item, so that
// they teach what the two numbers mean whatever the project is about. Nothing is saved.

import { t } from "./words.js";

const SEEN = "pairlearn tutorial seen";

export function lessons(positive, negative) {
  const names = { positive, negative };
  const left = (text) => ({ kind: "text", title: t("Example A"), text });
  const right = (text) => ({ kind: "text", title: t("Example B"), text });
  return [
    {
      left: left(t("Every sign says “{positive}”. You would bet on it.", names)),
      right: right(t("This one as well: “{positive}” beyond doubt.", names)),
      title: t("Two of a kind"),
      text: t("You are sure of both, and they are the same. Press S, or the first button."),
      good: ({ similarity, difference }) => similarity >= 85 && Math.abs(difference ?? 0) <= 15,
      praise: t("Right: surely the same, and no difference between them."),
      hint: t("Both are surely alike here: press S. Or move the first slider close to 100% and the second to the middle."),
    },
    {
      left: left(t("No sign at all of “{positive}”. Surely “{negative}”.", names)),
      right: right(t("Clearly “{positive}”.", names)),
      title: t("Different, and you know which"),
      text: t("Only the right one is “{positive}”. Press R, or drag the second slider all the way to the right, and the first one to 0%.", names),
      good: ({ similarity, difference }) => (similarity ?? 0) <= 15 && difference >= 85,
      praise: t("Right: surely different, and it is the right one."),
      hint: t("The right one is “{positive}” and the left one is not: press R.", names),
    },
    {
      left: left(t("You really cannot tell. It might as well be a coin toss.")),
      right: right(t("Probably “{positive}”: nine times out of ten.", names)),
      title: t("When you are not sure"),
      text: t("Compared with a coin toss, anything is the same half of the time: 50%. And 90% is 40 more than 50%: move the second slider 40 to the right. Keys: 5, Enter, 4, Enter. Watch the shaded part: it shows what fits."),
      good: ({ similarity, difference }) =>
        Math.abs(similarity - 50) <= 20 && difference >= 15 && difference <= 60,
      praise: t("Exactly. About right is good enough: go with your judgement."),
      hint: t("Put the first slider at about 50%, the second about 40 to the right."),
    },
  ];
}

export function seen() {
  try {
    return localStorage.getItem(SEEN) !== null;
  } catch {
    return false;
  }
}

export function remember() {
  try {
    localStorage.setItem(SEEN, "1");
  } catch {
    // Storage may be switched off: the tutorial then shows again.
  }
}
