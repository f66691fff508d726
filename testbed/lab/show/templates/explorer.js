// SPDX-License-Identifier: GPL-2.0-only
// The report's live figures: every point, distributions of delay, and time with losses by cause.
// They are drawn as SVG from the page's own data; nothing is fetched.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("explorer-data").textContent);
  const [ALGORITHM, PLACE, SEED, ID, VALUES] = [0, 1, 2, 3, 4];
  const MARGIN = { top: 12, right: 16, bottom: 44, left: 62 };
  const NEAR_PX = 24;
  const hidden = new Set(); // algorithms that are switched off

  const byId = (id) => document.getElementById(id);
  const number = (value) => (value === null ? "-" : String(+value.toPrecision(5)));
  const element = (name, attributes = {}, parent = null, text = "") => {
    const svg = ["svg", "g", "path", "line", "text", "circle", "rect", "clipPath"].includes(name);
    const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name)
      : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  };

  // --- scales ---------------------------------------------------------------------------

  const ticksOf = (low, high, log) => {
    if (log) {
      const found = [];
      for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
        for (const of of [1, 2, 5]) {
          const tick = of * 10 ** power;
          if (tick >= low && tick <= high) found.push(+tick.toPrecision(3));
        }
      if (found.length > 1) return found;
    }
    const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((of) => of * power).find((of) => of >= rough);
    const found = [];
    for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9; i++)
      found.push(+(i * step).toPrecision(12));
    return found;
  };

  const scale = (low, high, from, to, log) => {
    const at = log ? Math.log10 : (value) => value;
    const span = at(high) - at(low) || 1;
    const made = (value) => from + ((at(value) - at(low)) / span) * (to - from);
    made.back = (px) => {
      const value = at(low) + ((px - from) / (to - from)) * span;
      return log ? 10 ** value : value;
    };
    made.ticks = ticksOf(low, high, log);
    return made;
  };

  // --- a chart: axes, a tip, keys ------------------------------------------------------

  class Chart {
    constructor(id, height) {
      this.figure = byId(id);
      this.plot = this.figure.querySelector(".plot");
      this.said = this.figure.querySelector(".said");
      this.height = height;
      new ResizeObserver(() => this.draw()).observe(this.plot);
    }

    frame(x, y, labels) { // ranges [low, high, log]
      const width = Math.max(this.plot.clientWidth, 240), height = this.height;
      this.width = width;
      this.plot.replaceChildren();
      const svg = element("svg", {
        viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true",
      }, this.plot);
      this.x = scale(x[0], x[1], MARGIN.left, width - MARGIN.right, x[2]);
      this.y = scale(y[0], y[1], height - MARGIN.bottom, MARGIN.top, y[2]);
      const sparse = Math.ceil((this.x.ticks.length * 46) / (width - MARGIN.left));
      this.x.ticks.forEach((tick, i) => {
        const at = this.x(tick);
        element("line", { x1: at, x2: at, y1: MARGIN.top, y2: height - MARGIN.bottom, class: "grid" }, svg);
        if (i % sparse === 0)
          element("text", { x: at, y: height - MARGIN.bottom + 17, "text-anchor": "middle" }, svg, number(tick));
      });
      for (const tick of this.y.ticks) {
        const at = this.y(tick);
        element("line", { x1: MARGIN.left, x2: width - MARGIN.right, y1: at, y2: at, class: "grid" }, svg);
        element("text", { x: MARGIN.left - 7, y: at + 4, "text-anchor": "end" }, svg, number(tick));
      }
      const middle = (height - MARGIN.bottom + MARGIN.top) / 2;
      element("text", { x: (width + MARGIN.left) / 2, y: height - 8, "text-anchor": "middle" }, svg, labels[0]);
      element("text", { x: 14, y: middle, "text-anchor": "middle", transform: `rotate(-90 14 ${middle})` }, svg, labels[1]);
      const clip = `${this.figure.id}-clip`;
      element("rect", {
        x: MARGIN.left, y: 0, width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.bottom,
      }, element("clipPath", { id: clip }, svg));
      this.svg = svg;
      this.marks = element("g", { "clip-path": `url(#${clip})` }, svg);
      this.over = element("g", {}, svg);
    }

    path(xs, ys, look) {
      let d = "", pen = "M";
      xs.forEach((value, i) => {
        if (ys[i] === null) { pen = "M"; return; }
        d += `${pen}${this.x(value).toFixed(1)} ${this.y(ys[i]).toFixed(1)}`;
        pen = "L";
      });
      element("path", {
        d, fill: "none", stroke: look.colour, "stroke-width": look.ours ? 2.2 : 1.5, "stroke-dasharray": look.dash,
      }, this.marks);
    }

    say(text) { this.said.textContent = text; }
  }

  const rangeOf = (values, log) => {
    let low = Infinity, high = -Infinity;
    for (const value of values) {
      if (value === null || (log && value <= 0)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    if (low > high) return null;
    if (log) return [low / 1.08, high * 1.08, true];
    const from = low >= 0 ? 0 : low;
    return [from, high + (high - from) * 0.06 || 1, false];
  };
  const wide = (values) => {
    const found = values.filter((value) => value > 0);
    if (found.length < values.length) return false;
    return found.reduce((a, b) => Math.max(a, b), 0) > 15 * found.reduce((a, b) => Math.min(a, b), Infinity);
  };
  const options = (select, texts) => {
    texts.forEach((text, i) => element("option", { value: i }, select, text));
    select.closest("label").hidden = texts.length < 2;
  };
  // ours are full, the kernel's own hollow
  const inkOf = (look) => look.ours ? { fill: look.colour, "fill-opacity": 0.62 }
    : { fill: "none", stroke: look.colour, "stroke-width": 1.3 };
  const legend = (box, redraw) => data.algorithms.forEach((algorithm, i) => {
    const button = element("button", { type: "button", "aria-pressed": String(!hidden.has(i)) }, box);
    const swatch = element("svg", { viewBox: "-6 -6 12 12", width: 14, height: 14, class: "mark", "aria-hidden": "true" }, button);
    element("path", { d: `M0 0${algorithm.mark}`, ...inkOf(algorithm) }, swatch);
    button.append(algorithm.name);
    button.addEventListener("click", () => {
      hidden.has(i) ? hidden.delete(i) : hidden.add(i);
      button.setAttribute("aria-pressed", String(!hidden.has(i)));
      redraw();
    });
  });

  // --- every point ---------------------------------------------------------------------

  const metricText = (i) => data.metrics[i][1] + (data.metrics[i][2] ? ` (${data.metrics[i][2]})` : "");

  class Points extends Chart {
    constructor() {
      super("explorer-points", 420);
      [this.across, this.up, this.at] = ["x", "y", "place"].map((name) => byId(`explorer-${name}`));
      options(this.across, data.metrics.map((_, i) => metricText(i)));
      options(this.up, data.metrics.map((_, i) => metricText(i)));
      options(this.at, data.places.length > 1 ? ["all places", ...data.places] : ["all places"]);
      const delays = ["owd_ms_p95", "queue_delay_ms_p95", "srtt_ms_p50"];
      const known = data.metrics.map((metric) => metric[0]);
      this.across.value = Math.max(known.indexOf(delays.find((name) => known.includes(name))), 0);
      this.up.value = 0;
      for (const select of [this.across, this.up, this.at]) select.addEventListener("change", () => this.draw());
      this.plot.addEventListener("pointermove", (event) => this.hover(event));
      this.plot.addEventListener("pointerleave", () => this.show(null));
      this.plot.addEventListener("click", (event) => { this.hover(event); this.open(); });
      this.plot.addEventListener("keydown", (event) => this.key(event));
      this.current = null;
    }

    draw() {
      const [x, y, at] = [+this.across.value, +this.up.value, +this.at.value - 1];
      const shown = data.points.filter((point) => !hidden.has(point[ALGORITHM]) && (at < 0 || point[PLACE] === at)
        && point[VALUES + x] !== null && point[VALUES + y] !== null);
      const xs = shown.map((point) => point[VALUES + x]), ys = shown.map((point) => point[VALUES + y]);
      this.frame(rangeOf(xs, wide(xs)) || [0, 1, false], rangeOf(ys, wide(ys)) || [0, 1, false], [metricText(x), metricText(y)]);
      this.shown = shown.map((point) => ({ point, x: this.x(point[VALUES + x]), y: this.y(point[VALUES + y]) }));
      this.shown.sort((a, b) => a.x - b.x || a.y - b.y);
      const paths = data.algorithms.map(() => "");
      for (const { point, x: px, y: py } of this.shown)
        paths[point[ALGORITHM]] += `M${px.toFixed(1)} ${py.toFixed(1)}${data.algorithms[point[ALGORITHM]].mark}`;
      paths.forEach((d, i) => {
        if (d) element("path", { d, ...inkOf(data.algorithms[i]) }, this.marks);
      });
      const { current } = this;
      this.show(current && this.shown.find((of) => of.point === current.point) || null);
    }

    hover(event) {
      const box = this.svg.getBoundingClientRect();
      const px = event.clientX - box.left, py = event.clientY - box.top;
      let best = null, least = NEAR_PX ** 2;
      for (const of of this.shown) {
        const far = (of.x - px) ** 2 + (of.y - py) ** 2;
        if (far < least) [best, least] = [of, far];
      }
      this.show(best);
    }

    show(of) {
      this.current = of;
      this.over.replaceChildren();
      if (!of) return this.say(`${this.shown.length} of ${data.points.length} points`);
      element("circle", { cx: of.x, cy: of.y, r: 6.5, class: "ring" }, this.over);
      const [x, y] = [+this.across.value, +this.up.value];
      this.say(`${this.name(of.point)}: ${metricText(y)} ${number(of.point[VALUES + y])}, ${metricText(x)} ${number(of.point[VALUES + x])}`);
    }

    name(point) {
      const at = data.places[point[PLACE]];
      return `${data.algorithms[point[ALGORITHM]].name}${at ? `, ${at}` : ""}, seed ${point[SEED]}`;
    }

    key(event) {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (event.key === "Enter" || event.key === " ") this.open();
      else if (event.key === "Escape") this.show(null);
      else if (step && this.shown.length) {
        const i = this.current ? this.shown.indexOf(this.current) + step : 0;
        this.show(this.shown[Math.min(Math.max(i, 0), this.shown.length - 1)]);
      } else return;
      event.preventDefault();
    }

    open() {
      if (!this.current) return;
      const { point } = this.current, box = byId("explorer-one");
      box.replaceChildren();
      box.hidden = false;
      element("h3", {}, box, this.name(point));
      const list = element("dl", {}, box);
      data.metrics.forEach((_, i) => {
        element("dt", {}, list, metricText(i));
        element("dd", {}, list, number(point[VALUES + i]));
      });
      const raw = element("p", {}, box, "Raw data: ");
      const files = data.kept ? [`points/${point[ID]}.json`] : [];
      if (data.kept && data.sampled.includes(point[ID]))
        files.push(`samples/${point[ID]}.flows.csv`, `samples/${point[ID]}.hops.csv`);
      files.forEach((file, i) => raw.append(i ? ", " : "", element("a", { href: file }, null, file)));
      if (!files.length) raw.append(`point ${point[ID]}, in the folder of the run`);
    }
  }

  // --- distributions of delay ----------------------------------------------------------

  class Delays extends Chart {
    constructor() {
      super("explorer-delays", 320);
      this.at = byId("explorer-delays-place");
      this.places = [...new Set(data.delays.map((of) => of.place))].sort((a, b) => a - b);
      options(this.at, this.places.map((place) => data.places[place]));
      this.at.value = Math.floor(this.places.length / 2);
      this.at.addEventListener("change", () => this.draw());
      this.plot.addEventListener("pointermove", (event) => this.read(event.clientX - this.svg.getBoundingClientRect().left));
      this.plot.addEventListener("pointerleave", () => this.read(null));
      this.plot.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 8, ArrowLeft: -8 }[event.key];
        if (!step) return;
        this.read(Math.min(Math.max((this.px ?? MARGIN.left) + step, MARGIN.left), this.width - MARGIN.right));
        event.preventDefault();
      });
    }

    draw() {
      const place = this.places[+this.at.value];
      this.lines = data.delays.filter((of) => of.place === place && of.ms.length && !hidden.has(of.algorithm));
      const all = this.lines.flatMap((of) => of.ms), log = wide(all);
      const low = all.reduce((a, b) => Math.min(a, b), Infinity), range = rangeOf(all, log) || [0, 1, false];
      if (!log && low > 0 && all.length) range[0] = low * 0.95;
      this.frame(range, [0, 1, false], ["Round-trip time (ms)", "Share of samples below"]);
      for (const of of this.lines) {
        const look = data.algorithms[of.algorithm], shares = of.ms.map((_, i) => i / (of.ms.length - 1));
        this.path(of.ms, shares, look);
        const at = [0.1, 0.3, 0.5, 0.7, 0.9].map((share) => Math.round(share * (of.ms.length - 1)));
        element("path", {
          d: at.map((i) => `M${this.x(of.ms[i]).toFixed(1)} ${this.y(shares[i]).toFixed(1)}${look.mark}`).join(""),
          ...inkOf(look),
        }, this.marks);
      }
      this.read(null);
    }

    read(px) {
      this.px = px;
      this.over.replaceChildren();
      if (px === null) return this.say("Hover, or focus and press the arrow keys, to read shares.");
      const ms = this.x.back(px);
      element("line", { x1: px, x2: px, y1: MARGIN.top, y2: this.height - MARGIN.bottom, class: "cursor" }, this.over);
      const shares = this.lines.map((of) => {
        const below = of.ms.filter((value) => value <= ms).length / of.ms.length;
        return `${data.algorithms[of.algorithm].name} ${Math.round(100 * below)} %`;
      });
      this.say(`below ${number(+ms.toPrecision(4))} ms: ${shares.join(", ")}`);
    }
  }

  // --- over time -----------------------------------------------------------------------

  class Times extends Chart {
    constructor() {
      super("explorer-times", 380);
      [this.one, this.kind] = ["one-of", "series"].map((name) => byId(`explorer-times-${name}`));
      options(this.one, data.times.map((of) => [data.algorithms[of.algorithm].name, data.places[of.place], `seed ${of.seed}`].filter(Boolean).join(", ")));
      const kinds = Object.keys(data.times[0].series);
      options(this.kind, kinds);
      this.kind.value = Math.max(kinds.findIndex((kind) => kind.startsWith("Window")), 0);
      this.whole();
      for (const select of [this.one, this.kind]) select.addEventListener("change", () => { this.whole(); this.draw(); });
      for (const [name, factor] of [["in", 0.5], ["out", 2], ["whole", 0]])
        byId(`explorer-zoom-${name}`).addEventListener("click", () => this.zoom(factor));
      this.plot.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && document.activeElement !== this.plot) return; // the page scrolls
        this.zoom(event.deltaY < 0 ? 0.7 : 1 / 0.7, this.x.back(event.clientX - this.svg.getBoundingClientRect().left));
        event.preventDefault();
      }, { passive: false });
      this.plot.addEventListener("pointerdown", (event) => { this.from = this.inside(event); });
      this.plot.addEventListener("pointermove", (event) => this.drag(event));
      this.plot.addEventListener("pointerup", (event) => this.drop(event));
      this.plot.addEventListener("pointerleave", () => { this.from = null; this.over.replaceChildren(); });
      this.plot.addEventListener("keydown", (event) => this.key(event));
    }

    get of() { return data.times[+this.one.value]; }
    get end() { return this.of.s[this.of.s.length - 1] || 1; }
    inside(event) {
      const px = event.clientX - this.svg.getBoundingClientRect().left;
      return Math.min(Math.max(px, MARGIN.left), this.width - MARGIN.right);
    }
    whole() { this.range = [0, this.end]; }

    zoom(factor, at = (this.range[0] + this.range[1]) / 2) {
      if (!factor) this.whole();
      else {
        const span = Math.min(Math.max((this.range[1] - this.range[0]) * factor, this.end / 500), this.end);
        const share = (at - this.range[0]) / (this.range[1] - this.range[0]);
        const from = Math.min(Math.max(at - share * span, 0), this.end - span);
        this.range = [from, from + span];
      }
      this.draw();
    }

    draw() {
      const { of } = this, label = Object.keys(of.series)[+this.kind.value], values = of.series[label];
      const seen = values.filter((_, i) => of.s[i] >= this.range[0] && of.s[i] <= this.range[1]);
      const range = rangeOf(seen, false) || [0, 1, false];
      range[1] *= 1.18; // room for the losses
      this.frame([...this.range, false], range, ["Time (s)", label]);
      this.path(of.s, values, data.algorithms[of.algorithm]);
      this.values = values;
      const counts = [];
      Object.entries(data.causes).forEach(([cause, colour], row) => {
        let total = 0, d = "";
        for (const [second, count] of of.losses[cause] || []) {
          if (second < this.range[0] || second > this.range[1]) continue;
          total += count;
          d += `M${this.x(second).toFixed(1)} ${MARGIN.top + 4 + 11 * row}v8`;
        }
        element("path", { d, stroke: colour, "stroke-width": 2, fill: "none" }, this.marks);
        counts.push(`${total} ${cause}`);
      });
      this.summary = `${number(+this.range[0].toFixed(3))} to ${number(+this.range[1].toFixed(3))} s; losses: ${counts.join(", ")}`;
      this.say(this.summary);
    }

    drag(event) {
      const px = this.inside(event);
      this.over.replaceChildren();
      if (this.from != null && Math.abs(px - this.from) > 4)
        element("rect", { x: Math.min(px, this.from), width: Math.abs(px - this.from), y: MARGIN.top, height: this.height - MARGIN.bottom - MARGIN.top, class: "brush" }, this.over);
      const second = this.x.back(px), i = this.of.s.findIndex((value) => value >= second);
      if (i < 0) return;
      element("line", { x1: px, x2: px, y1: MARGIN.top, y2: this.height - MARGIN.bottom, class: "cursor" }, this.over);
      this.say(`${number(this.of.s[i])} s: ${Object.keys(this.of.series)[+this.kind.value]} ${number(this.values[i])}`);
    }

    drop(event) {
      const [a, b] = [this.from ?? 0, this.inside(event)].sort((one, other) => one - other);
      const asked = this.from != null && b - a > 4;
      this.from = null;
      if (!asked) return;
      this.range = [this.x.back(a), this.x.back(b)];
      this.draw();
    }

    key(event) {
      const span = this.range[1] - this.range[0];
      const move = { ArrowRight: 0.2, ArrowLeft: -0.2 }[event.key];
      if (event.key === "+" || event.key === "=") this.zoom(0.5);
      else if (event.key === "-") this.zoom(2);
      else if (event.key === "0") this.zoom(0);
      else if (move) {
        const from = Math.min(Math.max(this.range[0] + move * span, 0), this.end - span);
        this.range = [from, from + span];
        this.draw();
      } else return;
      event.preventDefault();
    }
  }

  const charts = [new Points()];
  if (data.delays.length) charts.push(new Delays());
  if (data.times.length) charts.push(new Times());
  legend(byId("explorer-legend"), () => charts.forEach((chart) => chart.draw()));
  byId("explorer").hidden = false;
})();
