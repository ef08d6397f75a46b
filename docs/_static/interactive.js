"use strict";
/* The three demonstrations of the page "Try it in the browser": plain JavaScript, no server.
   The formulas are those of pairlearn.labels and of the pair likelihood; a test compares them. */

const SVG = "http://www.w3.org/2000/svg";

function draw(parent, tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

const show = (value) => value.toFixed(2).replace("-", "−");

/* --- two answers about one pair ------------------------------------------------------------ */

function outcomes(s, c) {
  return [(1 - s - c) / 2, (1 - s + c) / 2, s];
}

function feasible(s, c) {
  return s <= 1 - Math.abs(c) + 1e-9 && c * c + 2 * s - 1 >= -1e-9;
}

/* Both solutions (r, r′) of r′ − r = c and rr′ + (1 − r)(1 − r′) = s. */
function posteriors(s, c) {
  const root = Math.sqrt(Math.max(c * c + 2 * s - 1, 0));
  return [root, -root].map((t) => [(1 + t - c) / 2, (1 + t + c) / 2]);
}

function startPlane(box) {
  const svg = box.querySelector("svg");
  const output = box.querySelector(".output");
  const x = (c) => 210 + 180 * c;
  const y = (s) => 220 - 190 * s;
  const edge = Array.from({ length: 81 }, (_, i) => -1 + i / 40);
  const lower = edge.map((c) => `${x(c)},${y((1 - c * c) / 2)}`);
  draw(svg, "polygon", { points: [`${x(0)},${y(1)}`, ...lower.toReversed()].join(" "), class: "region" });
  draw(svg, "path", { d: `M${x(-1)},${y(1)}V${y(0)}H${x(1)}`, class: "axis" });
  for (const c of [-1, 0, 1]) draw(svg, "text", { x: x(c), y: 238, class: "tick" }, show(c));
  for (const s of [0, 0.5, 1]) draw(svg, "text", { x: x(-1) - 14, y: y(s) + 4, class: "tick" }, `${s}`);
  draw(svg, "text", { x: 210, y: 255, class: "tick" }, "difference c");
  draw(svg, "text", { x: x(-1) + 34, y: 16, class: "tick" }, "similarity s");
  const names = ["difference c", "similarity s"];
  const point = draw(svg, "circle", { r: 9, class: "handle", tabindex: 0, role: "slider",
    "aria-label": names.join(" and ") });
  let [s, c] = [0.6, -0.2];

  function update() {
    point.setAttribute("cx", x(c));
    point.setAttribute("cy", y(s));
    const possible = feasible(s, c);
    const [a, b, same] = outcomes(s, c);
    const rows = [["only the left is positive", a, "a"], ["only the right is positive", b, "b"],
      ["both alike", same, "s"]];
    const bars = rows.map(([name, value, key]) => `<div class="bar" data-key="${key}"><span>${name}</span>
      <i style="width:${Math.max(0, value) * 9}rem"></i><b>${show(value)}</b></div>`);
    const [up, down] = posteriors(s, c);
    const pair = ([r, t]) => `left ${show(r)}, right ${show(t)}`;
    const below = possible
      ? `<p>Chances of being positive: <b>${pair(up)}</b> or <b>${pair(down)}</b>.</p>`
      : `<p class="bad">Impossible together: ${s > 1 - Math.abs(c)
        ? "what is that different cannot be so similar."
        : "what is so unlike must differ more."}</p>`;
    output.innerHTML = `<p>s = ${show(s)}, c = ${show(c)}</p>${bars.join("")}${below}`;
    point.setAttribute("aria-valuetext", `s ${show(s)}, c ${show(c)}`);
    point.setAttribute("aria-valuenow", c.toFixed(2));
    svg.classList.toggle("bad", !possible);
  }

  function move(newS, newC) {
    s = Math.min(1, Math.max(0, newS));
    c = Math.min(1, Math.max(-1, newC));
    update();
  }

  function follow(event) {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    move((220 - at.y) / 190, (at.x - 210) / 180);
  }
  svg.addEventListener("pointerdown", (event) => {
    svg.setPointerCapture(event.pointerId);
    point.focus();
    follow(event);
  });
  svg.addEventListener("pointermove", (event) => event.buttons && follow(event));
  point.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [0.05, 0], ArrowDown: [-0.05, 0], ArrowLeft: [0, -0.05], ArrowRight: [0, 0.05] };
    if (!step[event.key]) return;
    event.preventDefault();
    event.stopPropagation();  // the theme turns pages with the arrow keys
    move(s + step[event.key][0], c + step[event.key][1]);
  });
  update();
}

/* --- the same two answers as geometry ------------------------------------------------------- */

/* Two items as points (r, 1 − r): s is the inner product of both, c their distance along the axis. */
function startGeometry(box) {
  const svg = box.querySelector("svg");
  const output = box.querySelector(".output");
  const x = (r) => 110 + 200 * r;
  const y = (r) => 220 - 200 * r;
  draw(svg, "path", { d: `M${x(0)},${y(1)}V${y(0)}H${x(1)}`, class: "axis" });
  draw(svg, "path", { d: `M${x(1)},${y(0)}L${x(0)},${y(1)}`, class: "axis" });
  draw(svg, "text", { x: x(0.5), y: 255, class: "tick" }, "chance of positive");
  draw(svg, "text", { x: x(0), y: 14, class: "tick" }, "chance of negative");
  for (const value of [0, 1]) {
    draw(svg, "text", { x: x(value), y: 238, class: "tick" }, `${value}`);
    draw(svg, "text", { x: x(0) - 12, y: y(value) + 4, class: "tick" }, `${value}`);
  }
  const across = draw(svg, "path", { class: "across" });
  const items = [["left", 0.25], ["right", 0.7]].map(([name, r]) => ({
    name,
    r,
    arrow: draw(svg, "path", { class: "arrow" }),
    point: draw(svg, "circle", { r: 9, class: "handle", tabindex: 0, role: "slider",
      "aria-label": `chance that the ${name} item is positive`, "aria-valuemin": 0, "aria-valuemax": 1 }),
    title: draw(svg, "text", { class: "name" }, name),
  }));
  let moved = items[0];

  function update() {
    for (const { r, arrow, point, title } of items) {
      arrow.setAttribute("d", `M${x(0)},${y(0)}L${x(r)},${y(1 - r)}`);
      point.setAttribute("cx", x(r));
      point.setAttribute("cy", y(1 - r));
      point.setAttribute("aria-valuenow", r.toFixed(2));
      title.setAttribute("x", x(r) + 14);
      title.setAttribute("y", y(1 - r) - 8);
    }
    const [r, t] = items.map((item) => item.r);
    across.setAttribute("d", `M${x(r)},${y(1 - r)}V${y(0)}H${x(t)}V${y(1 - t)}`);
    const [s, c] = [r * t + (1 - r) * (1 - t), t - r];
    output.innerHTML = `<p>s = ${show(r)}·${show(t)} + ${show(1 - r)}·${show(1 - t)} =
      <b data-key="inner">${show(s)}</b>, the inner product</p>
      <p>c = ${show(t)} − ${show(r)} = <b data-key="along">${show(c)}</b>, along the horizontal axis</p>`;
  }

  function place(item, r) {
    item.r = Math.min(1, Math.max(0, r));
    update();
  }

  function follow(event) {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return ((at.x - 110) / 200 + 1 - (220 - at.y) / 200) / 2;
  }
  svg.addEventListener("pointerdown", (event) => {
    const r = follow(event);
    moved = items.toSorted((one, other) => Math.abs(one.r - r) - Math.abs(other.r - r))[0];
    svg.setPointerCapture(event.pointerId);
    moved.point.focus();
    place(moved, r);
  });
  svg.addEventListener("pointermove", (event) => event.buttons && place(moved, follow(event)));
  for (const item of items) {
    item.point.addEventListener("keydown", (event) => {
      const step = { ArrowUp: -0.05, ArrowLeft: -0.05, ArrowDown: 0.05, ArrowRight: 0.05 }[event.key];
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();  // the theme turns pages with the arrow keys
      place(item, item.r + step);
    });
  }
  update();
}

/* --- learning from clicks ------------------------------------------------------------------ */

const sigmoid = (z) => 1 / (1 + Math.exp(-z));

/* A generator with a seed, so that all readers see the same items (mulberry32). */
function randomNumbers(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/* Weights of a linear classifier that maximise the pair likelihood, with a small ridge. */
function learn(items, pairs) {
  const w = [0, 0, 0];
  for (let step = 0; step < 300; step++) {
    const gradient = w.map((value, i) => (i < 2 ? 0.02 * value : 0));
    for (const { left, right, answer: [a, b, s] } of pairs) {
      const [u, v] = [items[left].x, items[right].x];
      const [p, q] = [u, v].map((x) => sigmoid(w[0] * x[0] + w[1] * x[1] + w[2]));
      const same = p * q + (1 - p) * (1 - q);
      /* Derivatives of −a log p(1−q) − b log (1−p)q − s log same by the two log-odds. */
      const dp = -a * (1 - p) + b * p - (s * (2 * q - 1) * p * (1 - p)) / same;
      const dq = a * q - b * (1 - q) - (s * (2 * p - 1) * q * (1 - q)) / same;
      for (let i = 0; i < 3; i++) {
        gradient[i] += (dp * (i < 2 ? u[i] : 1) + dq * (i < 2 ? v[i] : 1)) / pairs.length;
      }
    }
    for (let i = 0; i < 3; i++) w[i] -= 1.5 * gradient[i];
  }
  return w;
}

/* Pairs before which no accuracy is shown: that of 40 random items is known to ±0.15. */
const ENOUGH = 20;

/* Half the 95% interval of an accuracy of ½, the widest, from the labels of as many items. */
const doubt = (pairs) => 0.98 / Math.sqrt(2 * pairs);

/* The accuracy as the answers see it; null where the line separates no pair. With p the share of
   positives among items called positive and o among the others, separated pairs have the mean
   difference p − o and the mean similarity po + (1 − p)(1 − o): two solutions. Pairs on one side,
   whose mean similarity is 1 − 2p(1 − p) or 1 − 2o(1 − o), tell which one it is. */
function estimateAccuracy(items, pairs, w) {
  const positive = (item) => w[0] * item.x[0] + w[1] * item.x[1] + w[2] > 0;
  const sums = [0, 1, 2].map(() => ({ count: 0, similarity: 0, difference: 0 }));
  for (const { left, right, answer: [a, b, s] } of pairs) {
    const sides = [left, right].map((index) => positive(items[index]));
    const sum = sums[Number(sides[0]) + Number(sides[1])];
    sum.count += 1;
    sum.similarity += s;
    sum.difference += sides[1] ? b - a : a - b;
  }
  if (sums[1].count === 0) return null;
  const mean = sums.map((sum) => sum.similarity / sum.count);
  const misfit = ([o, p]) => [[mean[0], o], [mean[2], p]]
    .reduce((total, [s, share]) => total + (isNaN(s) ? 0 : (s - 1 + 2 * share * (1 - share)) ** 2), 0);
  const [o, p] = posteriors(mean[1], sums[1].difference / sums[1].count)
    .sort((first, second) => misfit(first) - misfit(second))[0];
  const called = items.filter(positive).length / items.length;
  return called * Math.min(1, p) + (1 - called) * Math.min(1, 1 - o);
}

function startClicks(box) {
  const svg = box.querySelector("svg");
  const output = box.querySelector(".output");
  let seed = 2;
  let random, items, pairs, current, shown;

  function choose() {
    const left = Math.floor(random() * items.length);
    const right = (left + 1 + Math.floor(random() * (items.length - 1))) % items.length;
    current = { left, right };
  }

  /* The answer of an annotator who knows the chances of both classes, and no more. */
  function ideal({ left, right }) {
    const [r, t] = [items[left].r, items[right].r];
    return [r * (1 - t), (1 - r) * t, r * t + (1 - r) * (1 - t)];
  }

  function reset() {
    random = randomNumbers(++seed);
    items = Array.from({ length: 150 }, () => {
      const x = [4 * random() - 2, 4 * random() - 2];
      const r = sigmoid(3.5 * x[0] + 3.5 * x[1]);
      return { x, r, positive: random() < r };
    });
    [pairs, shown] = [[], false];
    choose();
    update();
  }

  function give(answer) {
    pairs.push({ ...current, answer });
    choose();
  }

  function update() {
    svg.replaceChildren();
    const at = ([u, v]) => [210 + 95 * u, 130 - 60 * v];
    let text = "<p>No answer yet.</p>";
    if (pairs.length > 0) {
      const w = learn(items, pairs);
      const [a, b] = Math.abs(w[1]) > Math.abs(w[0])
        ? [[-3, (3 * w[0] - w[2]) / w[1]], [3, (-3 * w[0] - w[2]) / w[1]]]
        : [[(3 * w[1] - w[2]) / w[0], -3], [(-3 * w[1] - w[2]) / w[0], 3]];
      draw(svg, "path", { d: `M${at(a)}L${at(b)}`, class: "line" });
      const right = items.filter((item) =>
        item.positive === w[0] * item.x[0] + w[1] * item.x[1] + w[2] > 0).length / items.length;
      const estimate = estimateAccuracy(items, pairs, w);
      text = `<p><b>${pairs.length}</b> ${pairs.length > 1 ? "pairs" : "pair"} judged.</p>`;
      text += pairs.length < ENOUGH
        ? `<p>Accuracy without labels: after ${ENOUGH} pairs.</p>`
        : `<p>Accuracy without labels: ${estimate === null ? "no pair lies across the line"
          : `<b data-key="estimate">${show(estimate)}</b> ± <span data-key="doubt">${show(doubt(pairs.length))}</span>,
          if the answers are calibrated`}</p>
          <p>By the hidden classes: <b data-key="truth">${show(right)}</b></p>`;
    }
    for (const item of items) {
      const [cx, cy] = at(item.x);
      const kind = shown ? (item.positive ? "positive" : "negative") : "hidden";
      draw(svg, "circle", { cx, cy, r: 3.2, class: kind });
    }
    for (const [name, index] of [["A", current.left], ["B", current.right]]) {
      const [cx, cy] = at(items[index].x);
      draw(svg, "circle", { cx, cy, r: 8, class: "marked" });
      draw(svg, "text", { x: cx + 11, y: cy + 4, class: "name" }, name);
    }
    output.innerHTML = text;
    box.querySelector("[data-show]").textContent = shown ? "Hide the classes" : "Show the classes";
  }

  box.addEventListener("click", ({ target }) => {
    if (!(target instanceof HTMLButtonElement)) return;
    if (target.dataset.answer) give(target.dataset.answer.split(",").map(Number));
    else if (target.dataset.many) {
      for (let n = 0; n < Number(target.dataset.many); n++) give(ideal(current));
    } else if ("show" in target.dataset) shown = !shown;
    else return reset();
    update();
  });
  reset();
}

startPlane(document.getElementById("plane"));
startGeometry(document.getElementById("geometry"));
startClicks(document.getElementById("clicks"));
