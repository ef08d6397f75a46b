// Three practice pairs. They describe in words how sure one would be of each item, so that
// they teach what the two numbers mean whatever the project is about. Nothing is saved.

const SEEN = "pairlearn tutorial seen";

export function lessons(positive, negative) {
  const card = (title, text) => ({ kind: "text", title, text });
  return [
    {
      left: card("Example A", `Every sign says “${positive}”. You would bet on it.`),
      right: card("Example B", `This one, too: “${positive}” beyond doubt.`),
      title: "Two of a kind",
      text: "You are sure of both, and they are the same. Press S, or the first button.",
      good: ({ similarity, difference }) => similarity >= 85 && Math.abs(difference ?? 0) <= 15,
      praise: "Right: surely the same, and no difference between them.",
      hint: "Both are surely alike here: S says that in one key. Or move the first slider " +
        "close to 100% and the second to the middle.",
    },
    {
      left: card("Example A", `No sign at all of “${positive}”. Surely “${negative}”.`),
      right: card("Example B", `Clearly “${positive}”.`),
      title: "Different, and you know which",
      text: `Only the right one is “${positive}”. Press R, or drag the second slider all the ` +
        "way to the right, and the first one to 0%.",
      good: ({ similarity, difference }) => (similarity ?? 0) <= 15 && difference >= 85,
      praise: "Right: surely different, and it is the right one.",
      hint: `The right one is “${positive}” and the left one is not: press R.`,
    },
    {
      left: card("Example A", "You really cannot tell. It might as well be a coin toss."),
      right: card("Example B", `Probably “${positive}”: nine times out of ten.`),
      title: "When you are not sure",
      text: "Against a coin toss, anything is the same half of the time: 50%. And 9 in 10 is more " +
        "than 5 in 10 by 40: move the second slider to the right, by 40. Keys: 5, Enter, 4, " +
        "Enter. Watch the shaded part: it shows what fits.",
      good: ({ similarity, difference }) =>
        Math.abs(similarity - 50) <= 20 && difference >= 15 && difference <= 60,
      praise: "Exactly. About right is good enough: go with your judgement.",
      hint: "Put the first slider at about 50%, the second about 40 to the right.",
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
